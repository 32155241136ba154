"""The sections of the report, one module each: from results to a table, a plot and paragraphs."""
