"""The commands of `python -m nmt`, one module each.

A module has `add_arguments`, which adds its options to a parser, and `run`, which takes the parsed arguments. The
docstring of `run` is the help of the command.
"""
