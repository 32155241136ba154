"""Adds arguments that several commands share, and words mistakes for users."""

import argparse
import contextlib
import dataclasses
import difflib
import itertools
import re
from pathlib import Path
from typing import Any, NoReturn

from ..config_fields import argument, is_absurd, is_optional, short
from ..decoding.options import DecodingOptions

Arguments = Any  # an argparse.ArgumentParser or a group of its arguments, whose class is private

# Short forms of options of `DecodingOptions`.
_SHORT = {"batch_size": "-b", "beam_size": "-k", "normalization_alpha": "-n"}
_ALIKE = 0.7  # similarity of a mistyped option with the right one, as difflib measures it


class Parser(argparse.ArgumentParser):
    """Prints a mistake in one line and exits with status 2."""

    def unrecognized(self, words: list[str]) -> NoReturn:
        """Refuses words that are no arguments, and names the options that they may stand for."""
        said = f"unrecognized arguments: {' '.join(words)}"
        known = re.findall(r"--\w+", self.format_help())
        close = (difflib.get_close_matches(w.partition("=")[0], known, 1, _ALIKE) for w in words)
        hints = list(itertools.chain.from_iterable(close))
        self.error(f"{said}; did you mean {' '.join(hints)}?" if hints else said)

    def error(self, message: str) -> NoReturn:
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
    help = f"{help} (required)" if required else help
    parser.add_argument(*names, type=Path, required=required, metavar=metavar, help=help, **given)


def add_models(parser: argparse.ArgumentParser, help: str) -> None:
    """Adds the option that names one or more models."""
    add_path(
        parser,
        "-m",
        "--model",
        required=True,
        help=help,
        nargs="+",
        action="extend",
        metavar="DIR",
    )


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


def add_decoding(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds these options of `DecodingOptions` to a command."""
    group = parser.add_argument_group("translation")
    for field in dataclasses.fields(DecodingOptions):
        if field.name in names:
            add_option(group, field, *filter(None, [_SHORT.get(field.name)]))


def add_option(group: Arguments, field: dataclasses.Field, *short: str) -> None:
    """Adds an option of a dataclass. One that is not given is absent from the parsed arguments."""
    british = field.name.replace("normalization", "normalisation")
    group.add_argument(
        *short,
        *dict.fromkeys([f"--{field.name}", f"--{british}"]),
        dest=field.name,
        default=argparse.SUPPRESS,
        help=f"{field.metadata['help']} ({_remark(field)})",
        **argument(field),
    )


def _remark(field: dataclasses.Field) -> str:
    """Describes the allowed values, unless the metavar lists them, and the default."""
    listed = field.metadata["argument"].get("metavar", "").startswith("{")
    allowed = "" if listed else field.metadata["allowed"]
    if field.default is not None:
        given = f"default: {field.default}"
    else:
        given = "optional" if is_optional(field) else "required"
    return "; ".join(filter(None, [allowed, given]))
