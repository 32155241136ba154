"""Options on the command line, from their declarations in `Config` and `DecodingOptions`."""

import argparse
import dataclasses
from collections.abc import Collection

from ..config import Config
from ..config_fields import argument, is_optional
from ..decoding.options import DecodingOptions
from .arguments import Arguments

# First option of each group in --help -> title of the group.
_GROUPS = {
    "source_dataset": "texts",
    "model_type": "model",
    "rnn_dropout_embedding": "optimization",
    "learning_schedule": "learning rate",
    "finish_after": "stopping and validation",
}
_SHORT = {"batch_size": "-b", "beam_size": "-k", "normalization_alpha": "-n"}  # of `DecodingOptions`


def add_options(
    parser: argparse.ArgumentParser, names: Collection[str] | None = None, optional: Collection[str] = ()
) -> None:
    """Adds options of `Config` to a command, in groups. Options not given are absent from the parsed arguments.

    Args:
        names: The options to add; `None` adds all.
        optional: Options that a training requires and this command does not.
    """
    groups, title = {}, ""
    for field in dataclasses.fields(Config):
        title = _GROUPS.get(field.name, title)
        if names is not None and field.name not in names:
            continue
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add(groups[title], field, field.name in optional)


def add_decoding(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds these options of `DecodingOptions` to a command. Options not given are absent from the parsed arguments."""
    group = parser.add_argument_group("translation")
    for field in dataclasses.fields(DecodingOptions):
        if field.name in names:
            _add(group, field, False, *filter(None, [_SHORT.get(field.name)]))


def decoding_options(arguments: argparse.Namespace) -> DecodingOptions:
    """Returns the parsed options that `add_decoding` added, with defaults for the others.

    Raises:
        UserError: An option is wrong.
    """
    names = {field.name for field in dataclasses.fields(DecodingOptions)}
    return DecodingOptions(**{name: value for name, value in vars(arguments).items() if name in names})


def _add(group: Arguments, field: dataclasses.Field, optional: bool, *short: str) -> None:
    group.add_argument(
        *short,
        *dict.fromkeys([f"--{field.name}", f"--{field.name.replace('normalization', 'normalisation')}"]),
        dest=field.name,
        default=argparse.SUPPRESS,
        help=f"{field.metadata['help']} ({_remark(field, optional)})",
        **argument(field),
    )


def _remark(field: dataclasses.Field, optional: bool) -> str:
    """Returns the allowed values, unless the metavar lists them, and the default or whether the option is required."""
    listed = field.metadata["argument"].get("metavar", "").startswith("{")
    allowed = "" if listed else field.metadata["allowed"]
    if field.default is not None:
        given = f"default: {field.default}"
    else:
        given = "optional" if optional or is_optional(field) else "required"
    return "; ".join(filter(None, [allowed, given]))
