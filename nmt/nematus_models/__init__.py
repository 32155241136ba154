"""Imports and exports models of Nematus, and imports those of Marian.

Only this folder knows their names of options and variables.
"""
