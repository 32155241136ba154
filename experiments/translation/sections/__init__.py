"""The sections of the report: from results to a table, a plot and paragraphs."""
