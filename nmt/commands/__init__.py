"""The commands of `python -m nmt`.

`options.py` declares their options, and the module of a command has `run`.
"""
