"""Exports models, which run where this project is not installed, and serves them."""
