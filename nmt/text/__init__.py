"""Texts: lines, vocabularies, batches of token ids, corpora."""
