"""Command-line arguments that several commands share, and messages to the user."""

import argparse
import difflib
import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

Arguments = Any  # an argparse.ArgumentParser or a group of its arguments, whose class is private

T = TypeVar("T")
_ALIKE = 0.7  # similarity of a mistyped option with the right one, as difflib measures it

BEAM_SIZE = 5
ALPHA = 0.0  # no normalization by length


class Parser(argparse.ArgumentParser):
    """Prints a mistake in one line and exits with status 2."""

    def unrecognized(self, words: list[str]) -> NoReturn:
        """Refuses words that are no arguments, and names the option that each may stand for."""
        known, said = re.findall(r"--\w+", self.format_help()), f"unrecognized arguments: {' '.join(words)}"
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        close = [difflib.get_close_matches(option, known, 1, _ALIKE) for option in options]
        hints = [each[0] for each in close if each]
        self.error(f"{said}; did you mean {' '.join(hints)}?" if hints else said)

    def error(self, message: str) -> NoReturn:
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


def add_search(parser: Arguments) -> None:
    parser.add_argument(
        "-k",
        "--beam_size",
        type=positive_int,
        default=BEAM_SIZE,
        help=f"hypotheses that are kept (above 0; default: {BEAM_SIZE})",
    )
    add_alpha(parser)


def add_alpha(parser: Arguments) -> None:
    parser.add_argument(
        "-n",
        "--normalization_alpha",
        type=non_negative_float,
        nargs="?",
        default=ALPHA,
        const=1.0,
        metavar="ALPHA",
        help=f"divide costs by length to the power ALPHA (at least 0; default: {ALPHA:g}; -n alone: 1)",
    )


def add_batch_size(parser: argparse.ArgumentParser, items: str) -> None:
    parser.add_argument(
        "-b", "--batch_size", type=positive_int, default=80, help=f"{items} in a batch (above 0; default: 80)"
    )


def positive_int(text: str) -> int:
    """Parses a whole number above 0."""
    return at_most(2**31 - 1)(text)


def at_most(most: int) -> Callable[[str], int]:
    """Returns a function that parses a whole number above 0."""

    def parse(text: str) -> int:
        if not (text.isdecimal() and len(text) < 20 and 0 < int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text[:50]!r} is not a whole number above 0 and at most {most}")
        return int(text)

    return parse


def seed(text: str) -> int:
    """Parses the seed of a random generator."""
    if not (text.isdecimal() and int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2147483647")
    return int(text)


def positive_float(text: str) -> float:
    """Parses a number above 0."""
    if not (number := non_negative_float(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def non_negative_float(text: str) -> float:
    """Parses a number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def with_bar(results: Iterable[T], output: TextIO, **given: Any) -> Iterable[T]:
    """Draws a progress bar, unless the output is a terminal, where it would stand between the lines.

    Args:
        results: What to yield.
        output: Where the caller writes the results.
        **given: Arguments of `tqdm`.
    """
    from tqdm import tqdm  # not in the environment of nmt.bulk, which shares this module

    hidden = {"disable": True} if output.isatty() else {}  # False would overrule TQDM_DISABLE
    return tqdm(results, **given, **hidden)


def say(text: str) -> None:
    """Prints a line on standard error."""
    print(text, file=sys.stderr, flush=True)
