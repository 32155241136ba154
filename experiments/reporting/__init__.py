"""Shared by the reports of all tasks: sections, statistics, plot styles and output files."""
