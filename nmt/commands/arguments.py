"""Command-line arguments that several commands share, and messages to the user."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

Arguments = Any  # an argparse.ArgumentParser or a group of its arguments, whose class is private

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """Prints a mistake in one line and exits with status 2."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--model",
        type=Path,
        required=True,
        metavar="DIR",
        action=_Once,
        help="directory of a trained model (required)",
    )


def add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--model",
        type=Path,
        nargs="+",
        required=True,
        metavar="DIR",
        action=_Once,
        help="directory of a trained model, or several for an ensemble (required)",
    )


class _Once(argparse.Action):
    """Stores a value and refuses a second one."""

    def __call__(self, parser, namespace, value, option_string=None):
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "it was given twice; give it once")
        setattr(namespace, self.dest, value)


def positive_int(text: str) -> int:
    """Parses a whole number above 0."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def with_bar(results: Iterable[T], output: TextIO, **given: Any) -> Iterable[T]:
    """Draws a progress bar, unless the output is a terminal, where it would stand between the lines.

    Args:
        results: What to yield.
        output: Where the caller writes the results.
        **given: Arguments of `tqdm`.
    """
    hidden = {"disable": True} if output.isatty() else {}  # False would overrule TQDM_DISABLE
    return tqdm(results, **given, **hidden)


def say(text: str) -> None:
    """Prints a line on standard error."""
    print(text, file=sys.stderr, flush=True)
