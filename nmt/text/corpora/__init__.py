"""Writes English-German parallel corpora:

`train`, `dev` and `test`, each as `.en` and `.de` of raw text.
"""
