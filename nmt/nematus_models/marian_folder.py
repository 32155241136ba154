"""What the two kinds of folders of Marian models have in common."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UserError
from .arrays import Arrays, Rows
from .marian_vocabulary import Words, target_rows

SOURCE_TABLE = "encoder/embedding/embeddings"
TARGET_TABLE = "decoder/embedding/embeddings"
OUTPUT_TABLE = "decoder/output_kernel"
OUTPUT_BIAS = "decoder/output_bias"


class MarianFolder(NamedTuple):
    """A model as its folder describes it.

    Attributes:
        path: The file of its options.
        options: Those of our configuration.
        words: Those of the source and of the target.
        arrays: Its weights.
        name_of: Maps the path of a variable to the name of its array.
        is_transposed: Whether the array of this name is the transpose of its variable.
        rows: The rows of the arrays of tables and of the bias, by the path of the variable.
        files: The files of the weights.
        notes: What differs from what one might expect, in sentences.
    """

    path: Path
    options: dict[str, Any]
    words: tuple[Words, Words]
    arrays: Arrays
    name_of: Callable[[str], str]
    is_transposed: Callable[[str], bool]
    rows: Mapping[str, Rows]
    files: list[Path]
    notes: list[str]


def existing(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise UserError(f"{folder} has no {name}; download all files of the model again")
    return folder / name


def rows_of_tables(
    words: tuple[Words, Words], start: int | None, is_shared: bool
) -> dict[str, Rows]:
    """Returns the rows of all tables and of the bias.

    Args:
        words: Those of the source and of the target.
        start: The row that translations begin with; None is a vector of zeros.
        is_shared: Whether source and target have one table.
    """
    table, bias = target_rows(words[1], start)
    return {
        SOURCE_TABLE: table if is_shared else Rows(words[0].count, words[0].rows),
        TARGET_TABLE: table,
        OUTPUT_TABLE: table,
        OUTPUT_BIAS: bias,
    }


def name_in_layer(
    path: str, template: str, blocks: Mapping[str, str], weights: Mapping[str, str]
) -> str:
    """Returns the name of a weight of a layer.

    Args:
        path: That of our variable.
        template: The name, with `side`, `layer` (from 1), `index` (from 0), `block` and `weight`.
        blocks: Their name of each of our blocks.
        weights: Their name of each of our weights.
    """
    side, layer, block, *_, weight = path.split("/")
    number = int(layer.removeprefix("layer_"))
    return template.format(
        side=side,
        layer=number,
        index=number - 1,
        block=blocks[block],
        weight=weights[weight],
    )
