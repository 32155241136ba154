"""Reads and writes files, checkpoints and the cache."""
