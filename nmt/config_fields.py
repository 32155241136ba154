"""Declares options: default, help, allowed values, and the options that they depend on."""

import argparse
import contextlib
import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from .errors import UserError

LEAST = 1e-30  # sizes of numbers
MOST = 2**31 - 1


def option(
    default: Any,
    text: str,
    allowed: str = "",
    ok: Callable[[Any], bool] = lambda value: True,
    **argument: Any,
) -> Any:
    """Declares an option.

    Args:
        default: Its default; `None` if there is none.
        text: Its help.
        allowed: The allowed values in words.
        ok: Returns whether a value is allowed.
        argument: More arguments of `add_argument`.
    """
    metadata = {"help": text, "allowed": allowed, "ok": ok, "argument": argument, "with": {}}
    return dataclasses.field(default=default, metadata=metadata)


def only_with(field: Any, **needed: tuple[str, ...]) -> Any:
    """Restricts an option: it has an effect only if another option has one of these values."""
    return dataclasses.field(default=field.default, metadata={**field.metadata, "with": needed})


rnn_only = functools.partial(only_with, model_type=("rnn",))
transformer_only = functools.partial(only_with, model_type=("transformer",))


def like(options: type, name: str) -> Any:
    """Declares an option as another class does, with the same default, help and allowed values."""
    (field,) = (field for field in dataclasses.fields(options) if field.name == name)
    return dataclasses.field(default=field.default, metadata=field.metadata)


# The code that reads a file checks that it exists.
required_file = functools.partial(option, None, metavar="FILE")
required_text = functools.partial(required_file, nargs="+")


def positive(default: float | None, text: str, most: float = math.inf, **given: Any) -> Any:
    bound = f" and at most {most}" if most < MOST else ""
    return option(default, text, f"above 0{bound}", lambda value: 0 < value <= most, **given)


def between(default: float | None, text: str, least: float, most: float, **given: Any) -> Any:
    """Declares a number with two bounds, both allowed."""
    allowed = f"from {least} to {most}"
    return option(default, text, allowed, lambda value: least <= value <= most, **given)


def non_negative(default: float, text: str, **given: Any) -> Any:
    return option(default, text, "0 or more", lambda value: value >= 0, **given)


def fraction(default: float, text: str, **given: Any) -> Any:
    return option(default, text, "at least 0 and below 1", lambda value: 0 <= value < 1, **given)


def choice(default: str, text: str, choices: Collection[str], hint: str = "", **given: Any) -> Any:
    allowed = f"one of {', '.join(choices)}{hint}"
    metavar = f"{{{','.join(choices)}}}"
    return option(default, text, allowed, lambda value: value in choices, metavar=metavar, **given)


def has_effect(field: dataclasses.Field, config: Any) -> bool:
    """Returns whether an option has an effect, given the other options of a configuration."""
    return all(getattr(config, name) in values for name, values in field.metadata["with"].items())


def mistakes(config: Any) -> list[str]:
    """Returns a message for each wrong option, or for each that has no effect if none is wrong."""
    fields = dataclasses.fields(config)
    found = [mistake(field, getattr(config, field.name)) for field in fields]
    return list(filter(None, found)) or list(_without_effect(config))


def mistake(field: dataclasses.Field, value: Any) -> str | None:
    """Returns a message if the value of an option is wrong, and `None` otherwise."""
    name = f"--{field.name}"
    if value is None:
        return None if is_optional(field) else f"{name} is missing: {field.metadata['help']}"
    kinds = _kinds(field)
    if not any(_fits(kind, value) for kind in kinds):
        described = next(filter(None, map(_DESCRIBED.get, kinds)), f"of type {kinds[0].__name__}")
        return f"{name} is {short(value)}; it must be {described}"
    if not field.metadata["ok"](value):
        return f"{name} is {short(value)}; it must be {field.metadata['allowed']}"
    if any(map(is_absurd, value if isinstance(value, tuple) else (value,))):
        size = f"a number must have a size from {LEAST:g} to {MOST}, or be 0"
        return f"{name} is {short(value)}; {size}"
    return None


def _without_effect(config: Any) -> Iterator[str]:
    """Yields a message for each option that has no effect but differs from its default."""
    for field in dataclasses.fields(config):
        if getattr(config, field.name) != field.default and not has_effect(field, config):
            ((name, values),) = field.metadata["with"].items()
            yield (
                f"--{field.name} has no effect with --{name} {getattr(config, name)}, "
                f"only with {' or '.join(values)}; leave it out"
            )


def is_absurd(value: Any) -> bool:
    """Returns whether a number is too large or too small for float32 or a count."""
    if type(value) is int:
        return abs(value) > MOST
    return type(value) is float and value != 0 and not LEAST <= abs(value) <= MOST


def short(value: Any) -> str:
    """Returns a value as a message quotes it."""
    text = repr(value)
    return text if len(text) < 200 else f"{text[:100]}..."


def is_optional(field: dataclasses.Field) -> bool:
    return types.NoneType in _kinds(field)


def argument(field: dataclasses.Field) -> dict[str, Any]:
    """Returns the arguments of `add_argument` for an option."""
    kind = _kinds(field)[0]
    given = field.metadata["argument"]
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(kind) is tuple:
        return {"type": typing.get_args(kind)[0], **given}
    return {"type": kind, "metavar": kind.__name__.upper(), **given}


def from_list(field: dataclasses.Field, value: list) -> Any:
    """Converts a list to the value of an option: one file name to a string, others to a tuple."""
    return value[0] if str in _kinds(field) and len(value) == 1 else tuple(value)


def read_yaml(path: Path, fields: Iterable[dataclasses.Field]) -> dict[str, Any]:
    """Reads options from a YAML file and converts them by their types: `1e-4` is a number, `no`
    turns a flag off.
    """
    import yaml

    try:
        # All values are texts.
        options = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(options, dict):
        raise UserError(f"{path} must hold options, each as `name: value`")
    for field in fields:
        if field.name in options:
            options[field.name] = _from_text(field, options[field.name])
    return options


def _from_text(field: dataclasses.Field, value: Any) -> Any:
    """Converts the text of an option, or a list of texts; one that is wrong stays as it is."""
    kind = _kinds(field)[0]
    kind = typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else kind

    def convert(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        with contextlib.suppress(ValueError, TypeError):
            return _FLAGS.get(text.lower(), text) if kind is bool else kind(text)
        return text

    if isinstance(value, list):
        return [convert(each) for each in value]
    return None if is_optional(field) and value in _NONE else convert(value)


def _kinds(field: dataclasses.Field) -> tuple[type, ...]:
    return typing.get_args(field.type) if isinstance(field.type, types.UnionType) else (field.type,)


def _fits(kind: type, value: Any) -> bool:
    """Returns whether a value has a type. A float is finite; a tuple has at least one entry."""
    if typing.get_origin(kind) is tuple:
        if not (isinstance(value, tuple) and value):
            return False
        entries = typing.get_args(kind)
        entries = entries[:1] * len(value) if ... in entries else entries
        return len(entries) == len(value) and all(map(_fits, entries, value))
    if kind is float:
        return type(value) in (int, float) and -math.inf < value < math.inf
    return type(value) is kind


# What YAML writes for a value that is not given, and for flags.
_NONE = ("", "~", "null")
_FLAGS = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(("false", "no", "off"), False)
# Types of options -> how messages call them. Other types have their own names.
_DESCRIBED = {
    float: "a finite number",
    tuple[str, str]: "two file names",
    tuple[str, ...]: "a string, or several",
    tuple[float, ...]: "finite numbers",
}
