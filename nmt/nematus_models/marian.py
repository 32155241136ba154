"""Imports Marian models, such as those of OPUS-MT: Marian's own files, or those of transformers.

The folder may come from an untrusted source: reading it executes nothing, unpickles nothing, and
reads no file outside.

Reference: Junczys-Dowmunt et al. (2018), arXiv:1804.00344.
"""

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..config import TEXTS, Config, make_config
from ..errors import UserError
from ..storage.checkpoints import BEST, save_checkpoint
from ..storage.files import ORIGIN, atomic_directory, read_inside, write_json
from ..system import build_system
from .arrays import Rows, match
from .marian_files import DECODER, read_marian
from .marian_folder import (
    OUTPUT_BIAS,
    OUTPUT_TABLE,
    SOURCE_TABLE,
    TARGET_TABLE,
    MarianFolder,
    existing,
)
from .marian_vocabulary import model_of_side
from .transformers_files import read_transformers

# A logit that adds nothing to a normalizer in float32, and little to smoothed costs.
_NEVER = -100.0
_PARTS = {
    "model_type": "transformer",
    "layer_normalization_type": "layernorm",
    "transformer_norm_position": "post",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    **dict.fromkeys(TEXTS, ""),
}


def import_marian(folder: Path, to: Path, licence: str | None) -> tuple[dict[str, Any], list[str]]:
    """Writes a model directory with the model of a folder.

    `licence` is for a folder that states none.

    Returns:
        The origin of the model, and sentences about what differs from what one might expect.
    """
    if not folder.is_dir():
        raise UserError(
            f"there is no folder {folder}; download the model where there is a network and give "
            "its folder"
        )
    described = read_marian(folder) if (folder / DECODER).is_file() else read_transformers(folder)
    rows = _rows_of_tables(described)
    config = _make_config(described, len(rows[TARGET_TABLE].order), to)
    origin = {
        "licence": _licence(folder) or licence or "not stated",
        "folder": folder.resolve().name,
        "sha256": _digest(described.files),
    }
    notes = [described.note] if described.note else []
    with atomic_directory(to) as directory:
        dictionaries = []
        for side, words in zip(("source", "target"), described.words, strict=True):
            pieces = existing(folder, f"{side}.spm")
            model, unknown = model_of_side(pieces, folder, words)
            dictionaries.append(directory / f"{side}.model")
            dictionaries[-1].write_bytes(model)
            if unknown:
                notes.append(
                    f"{unknown} pieces of {pieces.name} that {words.path.name} lacks are unknown "
                    "words"
                )
        if config.transformer_padding > 1:
            notes.append(
                f"{config.transformer_padding - 1} rows of the tables have no piece: they are "
                "never chosen, but count in costs"
            )
        _require_numbers(config, described)
        system = build_system(config, tuple(dictionaries))
        weights = match(
            system.model.variables,
            described.arrays,
            lambda path, _: described.tables.get(path) or described.name_in_layer(path),
            described.transposed,
            "give the files of one model, complete and unchanged",
            rows,
        )
        config.save(directory / "config.json")
        write_json(directory / ORIGIN, origin, escaped=False)
        save_checkpoint(directory / BEST, weights, {}, system.fingerprint)
    return origin, notes


def _rows_of_tables(described: MarianFolder) -> dict[str, Rows]:
    """Returns the rows of all tables and of the bias, by the paths of their variables.

    In those of the target, the rows that no piece has come after the words, then the one that
    translations begin with.
    """
    source, target = described.words
    start = described.start
    others = np.setdiff1d(np.arange(target.count), [*target.rows, -1 if start is None else start])
    order = np.concatenate([target.rows, others, [start or 0]])
    table = Rows(target.count, order, 0.0 if start is None else None)
    is_extra = start is not None and start not in target.rows  # it counts in the normalizer
    return {
        SOURCE_TABLE: table if described.is_shared else Rows(source.count, source.rows),
        TARGET_TABLE: table,
        OUTPUT_TABLE: table,
        OUTPUT_BIAS: Rows(target.count, order, None if is_extra else _NEVER),
    }


def _make_config(described: MarianFolder, rows: int, to: Path) -> Config:
    """Returns the configuration of a model whose table of the target has this many rows."""
    tables = described.tables
    options = {
        "tie_encoder_decoder_embeddings": described.is_shared,
        "tie_decoder_embeddings": tables[OUTPUT_TABLE] == tables[TARGET_TABLE],
        "transformer_padding": rows - len(described.words[1].names),
        "dictionaries": tuple(str(to / f"{side}.model") for side in ("source", "target")),
    }
    try:
        return make_config(_PARTS | described.options | options)
    except UserError as error:
        raise UserError(f"{described.path}: {str(error).splitlines()[0]}") from None


def _require_numbers(config: Config, described: MarianFolder) -> None:
    """Refuses options of a larger model than the weights hold, before that model is built."""
    layers = config.transformer_enc_depth + config.transformer_dec_depth
    units = config.state_size
    needed = layers * (4 * units + 2 * config.transformer_ffn_hidden_size) * units
    held = sum(map(math.prod, described.arrays.shapes.values()))
    if needed > held:
        raise UserError(
            f"{described.path} describes a model of at least {needed} numbers, and "
            f"{described.arrays.path} holds {held}; give the files of one model"
        )


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(np.memmap(path, np.uint8, "r"))
    return digest.hexdigest()


def _licence(folder: Path) -> str:
    """Returns the licence that the front matter of README.md states, or an empty string."""
    path = folder / "README.md"
    text = read_inside(path, folder).decode(errors="replace") if path.exists() else ""
    front = re.match(r"---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    line = r"^licen[sc]e:[ \t]*([\"']?)([^\s\"'#][^\"'#\n]*?)\1[ \t]*(?:#.*)?$"
    stated = re.search(line, front[1], re.MULTILINE) if front else None
    return "".join(filter(str.isprintable, stated[2])).strip() if stated else ""
