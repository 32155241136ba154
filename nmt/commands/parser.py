"""The command line of `python -m nmt`."""

import argparse
import contextlib
import importlib.metadata

from . import (
    average,
    corpus,
    curves,
    evaluate,
    export,
    export_nematus,
    import_nematus,
    launch,
    prepare,
    score,
    serve,
    train,
    translate,
    vocab,
)
from .arguments import Parser

_COMMANDS = (
    *(corpus, vocab, prepare, train, launch, average, curves),
    *(translate, evaluate, score, export, serve, import_nematus, export_nematus),
)


def _versions() -> str:
    """Returns the versions of the program and of TensorFlow."""
    found = []
    for name in ("rmsnorm-tf", "tensorflow"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)


def parse_arguments() -> argparse.Namespace:
    """Returns the parsed command line; its attribute `run` is the function of the command."""
    parser = Parser(prog="python -m nmt", description="Neural machine translation, Nematus style.")
    parser.add_argument("--version", action="version", version=_versions())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in _COMMANDS:
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        text = module.run.__doc__
        added = commands.add_parser(name, help=text.rstrip("."), description=text)
        module.add_arguments(added)
        added.set_defaults(run=module.run, fail=added.unrecognized)
    arguments, unknown = parser.parse_known_args()
    if unknown:  # argparse itself would refer to the help of all commands, not of this one
        arguments.fail(unknown)
    del arguments.fail
    return arguments
