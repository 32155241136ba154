"""Command-line arguments that several commands share, and messages to the user."""

import argparse
import contextlib
import difflib
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from ..config_fields import is_absurd, short

Arguments = Any  # an argparse.ArgumentParser or a group of its arguments, whose class is private

_ALIKE = 0.7  # similarity of a mistyped option with the right one, as difflib measures it


class Parser(argparse.ArgumentParser):
    """Prints a mistake in one line and exits with status 2."""

    def parse_known_args(self, args=None, namespace=None):
        self._words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def unrecognized(self, words: list[str]) -> NoReturn:
        """Refuses words that are no arguments, and names the option that each may stand for."""
        said = f"unrecognized arguments: {' '.join(words)}"
        hints = list(self._meant(words).values())
        self.error(f"{said}; did you mean {' '.join(hints)}?" if hints else said)

    def _meant(self, words: list[str]) -> dict[str, str]:
        """Returns the option that each mistyped one stands for."""
        known = re.findall(r"--\w+", self.format_help())
        options = [word.partition("=")[0] for word in words]
        mistyped = [each for each in options if each.startswith("--") and each not in known]
        close = {each: difflib.get_close_matches(each, known, 1, _ALIKE) for each in mistyped}
        return {each: found[0] for each, found in close.items() if found}

    def error(self, message: str) -> NoReturn:
        is_missing = message.startswith("the following arguments are required")
        if is_missing and (mistyped := list(self._meant(self._words))):
            self.unrecognized(mistyped)
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_path(
    parser: Arguments,
    *names: str,
    help: str,
    required: bool = False,
    metavar: Any = "FILE",
    **given: Any,
) -> None:
    """Adds an option for a path. The help says if it is required."""
    remark = " (required)" if required else ""
    parser.add_argument(
        *names, type=Path, required=required, metavar=metavar, help=f"{help}{remark}", **given
    )


def add_model(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Adds the option that names a model or, for an ensemble, several."""
    about = f"directory of a trained model{', or several for an ensemble' if several else ''}"
    nargs = {"nargs": "+"} if several else {}
    add_path(
        parser, "-m", "--model", metavar="DIR", required=True, action=_Once, help=about, **nargs
    )


class _Once(argparse.Action):
    def __call__(self, parser, namespace, value, option_string=None):
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "it was given twice; give it once")
        setattr(namespace, self.dest, value)


def add_number(parser: Arguments, name: str, kind: type, field: Any) -> None:
    """Adds an option for a number, declared as in `config_fields`.

    The help says what is allowed, and the default.
    """

    def parse(text: str) -> Any:
        with contextlib.suppress(ValueError):
            value = kind(text)
            if field.metadata["ok"](value) and not is_absurd(value):
                return value
        called = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(
            f"{short(text)} is not {called} {field.metadata['allowed']}"
        )

    otherwise = "optional" if field.default is None else f"default: {field.default}"
    parser.add_argument(
        f"--{name}",
        type=parse,
        default=field.default,
        metavar="N",
        help=f"{field.metadata['help']} ({field.metadata['allowed']}; {otherwise})",
    )
