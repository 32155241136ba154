"""Describes Marian models and reads their options, whichever files a folder has."""

import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UserError
from .arrays import Arrays
from .marian_vocabulary import Words

SOURCE_TABLE = "encoder/embedding/embeddings"
TARGET_TABLE = "decoder/embedding/embeddings"
OUTPUT_TABLE = "decoder/output_kernel"
OUTPUT_BIAS = "decoder/output_bias"


class MarianFolder(NamedTuple):
    """Describes the model of a folder.

    Attributes:
        path: The file of its options.
        options: Those of our configuration.
        words: Those of the source and of the target.
        start: The row of the target's table that translations begin with; None is a vector of
            zeros.
        arrays: Its weights.
        tables: The names of the arrays of tables and of the bias, by the path of the variable.
        name_in_layer: Returns the name of the array of another variable, by its path.
        transposed: Ends of the names of arrays that are the transpose of their variable.
        files: The files of the weights.
        note: What differs from what one might expect, in a sentence.
    """

    path: Path
    options: dict[str, Any]
    words: tuple[Words, Words]
    start: int | None
    arrays: Arrays
    tables: Mapping[str, str]
    name_in_layer: Callable[[str], str]
    transposed: tuple[str, ...]
    files: list[Path]
    note: str | None = None

    @property
    def is_shared(self) -> bool:
        """Whether source and target have one table."""
        return self.tables[SOURCE_TABLE] == self.tables[TARGET_TABLE]


def name_in_layer(
    template: str, blocks: Mapping[str, str], weights: Mapping[str, str], path: str
) -> str:
    """Returns the name of a weight of a layer.

    Args:
        template: The name, with `side`, `layer` (from 1), `index` (from 0), `block` and `weight`.
        blocks: Their name of each of our blocks.
        weights: Their name of each of our weights.
        path: That of our variable.
    """
    side, layer, block, *_, weight = path.split("/")
    number = int(layer.removeprefix("layer_"))
    return template.format(
        side=side, layer=number, index=number - 1, block=blocks[block], weight=weights[weight]
    )


def existing(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise UserError(
            f"{folder} has no {name}; download all files again: those of Marian with decoder.yml, "
            "or those of transformers with config.json"
        )
    return folder / name


def read_options(
    path: Path,
    theirs: Mapping[str, Any],
    supported: Mapping[str, tuple[Any, ...]],
    renamed: Mapping[str, tuple[str, ...]],
    program: str,
) -> dict[str, Any]:
    """Returns our names and their values of options, and refuses a model with other parts.

    Args:
        path: The file of the options.
        theirs: The options there.
        supported: Options that change the model -> the values that we have. One that is missing has
            the first.
        renamed: Our option -> theirs; two, if both sides must have the same.
        program: What can run the models that are refused.
    """
    theirs = {name: values[0] for name, values in supported.items()} | dict(theirs)
    for name, values in supported.items():
        if theirs[name] not in values:
            raise UserError(
                f"{path}: {name} is {reprlib.repr(theirs[name])}, and only "
                f"{' and '.join(map(repr, values))} can be imported; translate this model "
                f"with {program}"
            )
    ours = {}
    for name, names in renamed.items():
        found = [theirs.get(each) for each in names]
        if None in found or found[0] != found[-1]:
            raise UserError(
                f"{path}: {' and '.join(names)} must be given{' and equal' * len(names[1:])}, not "
                f"{' and '.join(map(reprlib.repr, found))}; translate this model with {program}"
            )
        ours[name] = found[0]
    return ours


def number(path: Path, name: str, value: Any) -> int:
    """Returns a count or an id, which may be given as text or as a list of one."""
    single = value[0] if isinstance(value, list) and len(value) == 1 else value
    text = str(single) if isinstance(single, int | str) else ""
    if not text.isdecimal() or len(text) > 9:
        raise UserError(
            f"{path}: {name} is {reprlib.repr(value)}, and must be one number, 0 or more; copy the "
            "file again"
        )
    return int(text)
