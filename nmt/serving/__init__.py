"""Exported models, which run where this project is not installed."""
