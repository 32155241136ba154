"""The commands of `python -m nmt`, one module each.

`parser.py` declares their options. The module of a command has `run`, which takes the parsed ones.
"""
