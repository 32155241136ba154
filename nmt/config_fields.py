"""Declares options as dataclass fields: default, help, allowed values, and the options that they depend on."""

import argparse
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Collection
from typing import Any


def option(
    default: Any, text: str, allowed: str = "", ok: Callable[[Any], bool] = lambda value: True, **argument
) -> Any:
    """Declares an option.

    Args:
        default: The default; `None` for an option without one.
        text: The help.
        allowed: The allowed values in words.
        ok: Returns whether a value is allowed.
        **argument: More arguments for argparse.
    """
    metadata = {"help": text, "allowed": allowed, "ok": ok, "argument": argument, "with": {}}
    return dataclasses.field(default=default, metadata=metadata)


def only_with(field: Any, **needed: tuple[str, ...]) -> Any:
    """Restricts an option: it has an effect only if another option has one of these values."""
    return dataclasses.field(default=field.default, metadata={**field.metadata, "with": needed})


def rnn_only(field: Any) -> Any:
    return only_with(field, model_type=("rnn",))


def transformer_only(field: Any) -> Any:
    return only_with(field, model_type=("transformer",))


def required_file(text: str, **argument) -> Any:
    """Declares a required file. The code that reads the file checks that it exists."""
    return option(None, text, metavar="FILE", **argument)


def positive(default: float | None, text: str) -> Any:
    return option(default, text, "above 0", lambda value: value > 0)


def non_negative(default: float, text: str) -> Any:
    return option(default, text, "0 or more", lambda value: value >= 0)


def fraction(default: float, text: str) -> Any:
    return option(default, text, "at least 0 and below 1", lambda value: 0 <= value < 1)


def vocabulary_size(text: str) -> Any:
    return option(None, text, "above 3, because end and unknown count as words", lambda value: value > 3)


def choice(default: str, text: str, choices: Collection[str], hint: str = "") -> Any:
    metavar = f"{{{','.join(choices)}}}"
    return option(default, text, f"one of {', '.join(choices)}{hint}", lambda value: value in choices, metavar=metavar)


def has_effect(field: dataclasses.Field, config: Any) -> bool:
    """Returns whether an option has an effect, given the other options of a configuration."""
    return all(getattr(config, name) in values for name, values in field.metadata["with"].items())


def mistake(field: dataclasses.Field, value: Any) -> str | None:
    """Returns a message if the value of an option is wrong, and `None` otherwise."""
    if value is None:
        return (
            None if isinstance(field.type, types.UnionType) else f"--{field.name} is missing: {field.metadata['help']}"
        )
    kind = _type(field)
    if kind is tuple:
        fits, described = isinstance(value, tuple) and [*map(type, value)] == [str, str], "two file names"
    elif kind is float:
        fits, described = type(value) in (int, float) and math.isfinite(value), "a finite number"
    else:
        fits, described = type(value) is kind, f"of type {kind.__name__}"
    if not fits:
        return f"--{field.name} is {value!r}; it must be {described}"
    if not field.metadata["ok"](value):
        return f"--{field.name} is {value!r}; it must be {field.metadata['allowed']}"
    return None


def argument(field: dataclasses.Field) -> dict[str, Any]:
    """Returns the arguments of `add_argument` for an option."""
    kind, given = _type(field), field.metadata["argument"]
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    return given if kind is tuple else {"type": kind, "metavar": kind.__name__.upper(), **given}


def _type(field: dataclasses.Field) -> type:
    """Returns the type of the option when given: str, int, float, bool or tuple."""
    kind = typing.get_args(field.type)[0] if isinstance(field.type, types.UnionType) else field.type
    return typing.get_origin(kind) or kind
