"""Reads and checks the configuration of a training.

Every option is declared once, under its name in Nematus if Nematus has it: those of a model in
`config_model.py`, the others in `config_training.py`. `commands/options.py` makes the command line
of these declarations.
"""

import dataclasses
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config_fields import from_list, has_effect, mistakes, read_yaml
from .config_model import ModelOptions
from .config_rules import complete, conflicts
from .config_training import (
    FileOptions,
    LearningRateOptions,
    OptimizationOptions,
    StartOptions,
    TextOptions,
    ValidationOptions,
)
from .decoding.options import SEARCH, DecodingOptions
from .errors import UserError
from .normalization import Normalization
from .storage.files import read_json, write_json

# The groups of options by their titles in --help.
GROUPS = {
    "files": FileOptions,
    "texts": TextOptions,
    "model": ModelOptions,
    "optimization": OptimizationOptions,
    "start": StartOptions,
    "learning rate": LearningRateOptions,
    "stopping and validation": ValidationOptions,
}


@dataclass(frozen=True)
class Config(  # a dataclass begins with the fields of its last base
    ValidationOptions,
    LearningRateOptions,
    StartOptions,
    OptimizationOptions,
    ModelOptions,
    TextOptions,
    FileOptions,
):
    """Holds everything that determines a training. `None` means that an option is not given."""

    def fixed_options(self) -> dict[str, Any]:
        """Returns the options that have an effect and stay the same when a training resumes."""
        return self._effective(TextOptions, ModelOptions, OptimizationOptions)

    @property
    def decoding(self) -> DecodingOptions:
        """The options that translate the validation text."""
        search = {name: getattr(self, name) for name in SEARCH}
        return DecodingOptions(batch_size=self.valid_batch_size, **search)

    @property
    def normalization(self) -> Normalization:
        return Normalization(
            self.layer_normalization_type,
            self.layer_normalization_center,
            self.transformer_norm_epsilon,
        )

    @property
    def architecture(self) -> dict[str, Any]:
        """The options that two models must share to have the same weights."""
        return self._effective(ModelOptions)

    def save(self, path: Path) -> None:
        """Writes the configuration as a JSON file for `--config`."""
        write_json(path, dataclasses.asdict(self))

    def _effective(self, *groups: type) -> dict[str, Any]:
        """Returns the options of groups that have an effect."""
        return {
            each.name: getattr(self, each.name)
            for group in groups
            for each in dataclasses.fields(group)
            if has_effect(each, self)
        }


def options_of(*groups: type) -> list[str]:
    """Returns the names of the options in groups."""
    return [field.name for group in groups for field in dataclasses.fields(group)]


FILES = options_of(FileOptions)
TEXTS = tuple(name for name in FILES if name.endswith("_dataset"))
CHANGEABLE = options_of(LearningRateOptions, ValidationOptions)


def read_options(path: Path) -> dict[str, Any]:
    """Returns the options in a file: YAML if its name ends in `.yaml` or `.yml`, else JSON."""
    if path.suffix in (".yaml", ".yml"):
        return read_yaml(path, dataclasses.fields(Config))
    return read_json(path)


def make_config(options: dict[str, Any]) -> Config:
    """Makes a validated configuration of options, those of their `preset`, and defaults."""
    options = complete(Config, options)
    unknown = sorted(options.keys() - options_of(Config))
    if unknown:
        raise UserError("\n".join(map(_unknown, unknown)))
    for field in dataclasses.fields(Config):
        value = options.get(field.name)
        if isinstance(value, list):
            options[field.name] = from_list(field, value)
    config = Config(**options)
    wrong = mistakes(config) or list(conflicts(config))
    if wrong:
        raise UserError("\n".join(wrong))
    return config


def read_config(directory: Path) -> Config:
    """Reads the configuration of a model directory; errors name its file."""
    path = directory / "config.json"
    try:
        return make_config(read_json(path, directory))
    except UserError as error:
        raise UserError(
            "\n".join(
                line if str(path) in line else f"{path}: {line}" for line in str(error).splitlines()
            )
        ) from None


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, options_of(Config), 1)
    hint = f"did you mean {close[0]}?" if close else "`python -m nmt train --help` lists them"
    return f"unknown option {name}; {hint}"
