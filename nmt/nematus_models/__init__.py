"""Import and export of Nematus's checkpoints.

Only this folder knows Nematus's names of options and variables.
"""
