"""Parses the command line of `python -m nmt`."""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

from .arguments import Parser
from .options import COMMANDS

# Commands, formats and endings of files -> the extra that they need, and its modules, a parent
# first.
_EXTRAS = {
    "serve": ("serving", ["h11", "prometheus_client", "starlette", "uvicorn"]),
    "ctranslate2": ("ctranslate2", ["ctranslate2"]),
    ".zst": ("zstd", ["backports", "backports.zstd"]),
}


def parse_arguments() -> tuple[str, argparse.Namespace]:
    """Returns the name of the module that runs the command, and its parsed options."""
    parser = Parser(
        prog="python -m nmt",
        description="Neural machine translation, Nematus style.",
        epilog="python -m nmt.bulk translates many files, on one machine or on a cluster.",
    )
    parser.add_argument("--version", action="version", version=_versions())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        added = commands.add_parser(
            add.__name__.replace("_", "-"), help=add.__doc__.rstrip("."), description=add.__doc__
        )
        add(added)
        added.set_defaults(module=add.__name__, fail=added.unrecognized)
    arguments, unknown = parser.parse_known_args()
    if unknown:  # argparse itself would refer to the help of all commands, not of this one
        arguments.fail(unknown)
    module = arguments.module
    del arguments.module, arguments.fail
    _require_extras(parser, module, getattr(arguments, "format", None))
    return module, arguments


def _require_extras(parser: Parser, command: str, format: str | None) -> None:
    """Refuses a command line that needs a missing package."""
    asked = {command, format, *(Path(word).suffix for word in sys.argv)}
    for what, (extra, modules) in _EXTRAS.items():
        for module in modules if what in asked else ():
            if importlib.util.find_spec(module) is None:
                parser.exit(2, f"nmt: {module} is missing; run `pip install -e '.[{extra}]'`\n")


def _versions() -> str:
    found = []
    for name in ("rmsnorm-tf", "tensorflow"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)
