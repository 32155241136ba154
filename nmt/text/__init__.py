"""Lines of text, vocabularies, batches of token ids, and corpora."""
