"""The commands of `python -m nmt`:

`parser.py` declares their options, and the module of a command has `run`.
"""
