"""Reads text, maps it to token ids with vocabularies, and makes batches."""
