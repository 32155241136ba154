"""Import of Marian models, such as those of OPUS-MT: Marian's own files, or those of transformers.

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

from ..config import Config, make_config
from ..errors import UserError
from ..storage.checkpoints import BEST, save_checkpoint
from ..storage.files import ORIGIN, atomic_directory, read_inside, write_json
from ..system import build_system
from .arrays import match
from .marian_files import DECODER, read_marian
from .marian_folder import TARGET_TABLE, MarianFolder, existing
from .marian_vocabulary import LARGEST, model_of_side
from .transformers_files import read_transformers

_PARTS = {
    "model_type": "transformer",
    "layer_normalization_type": "layernorm",
    "transformer_norm_position": "post",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    **dict.fromkeys(
        ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset"), ""
    ),
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
    config = _make_config(described, to)
    origin = {
        "licence": _licence(folder) or licence or "not stated",
        "folder": folder.resolve().name,
    }
    notes = list(described.notes)
    with atomic_directory(to) as directory:
        dictionaries = []
        for side, words in zip(("source", "target"), described.words, strict=True):
            pieces = existing(folder, f"{side}.spm")
            model, unknown = model_of_side(pieces, folder, words)
            dictionaries.append(directory / f"{side}.model")
            dictionaries[-1].write_bytes(model)
            if unknown:
                notes.append(
                    f"{unknown} pieces of {pieces.name} that {words.path.name} lacks are unknown words"
                )
        if config.transformer_padding > 1:
            notes.append(
                f"{config.transformer_padding - 1} rows of the tables have no piece: they are never "
                "chosen, but count in costs"
            )
        _require_numbers(config, described)
        system = build_system(config, tuple(dictionaries))
        weights = match(
            system.model.variables,
            described.arrays,
            lambda path, _: described.name_of(path),
            described.is_transposed,
            "give the files of one model, complete and unchanged",
            described.rows,
        )
        origin["sha256"] = _digest(described.files)
        config.save(directory / "config.json")
        write_json(directory / ORIGIN, origin, escaped=False)
        save_checkpoint(directory / BEST, weights, {}, system.fingerprint)
    return origin, notes


def _make_config(described: MarianFolder, to: Path) -> Config:
    padding = len(described.rows[TARGET_TABLE].order) - len(described.words[1].names)
    dictionaries = tuple(str(to / f"{side}.model") for side in ("source", "target"))
    options = {"transformer_padding": padding, "dictionaries": dictionaries}
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
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _licence(folder: Path) -> str | None:
    """Returns the licence that the front matter of README.md states, if it does."""
    if not (folder / "README.md").exists():
        return None
    text = read_inside(folder / "README.md", folder, LARGEST).decode(errors="replace")
    front = re.match(r"---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    stated = front and re.search(
        r"^licen[sc]e:[ \t]*([\"']?)([^\s\"'#][^\"'#\n]*?)\1[ \t]*(?:#.*)?$", front[1], re.MULTILINE
    )
    printable = "".join(filter(str.isprintable, stated[2])) if stated else ""
    return printable.strip() or None
