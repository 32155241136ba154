"""The sections of the report, from results to a table, a plot and paragraphs, and the words that
they share."""
