"""Checkpoints: `.npz` files with the arrays of a model, by name, and the state of its training, as JSON.

Checkpoints are written atomically. Reading one unpickles nothing.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import keras
import numpy as np

from ..errors import UserError
from .files import atomic_write

BEST, LAST = "best.npz", "last.npz"  # the best model, and the checkpoint that a training resumes from
KEPT = "kept"  # a directory of models, by update
VERSION = 1


def save_checkpoint(
    path: str | os.PathLike,
    variables: Iterable[keras.Variable],
    state: dict[str, Any],
    made_with: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes a checkpoint.

    Args:
        path: The file.
        variables: Each is stored under its path.
        state: State of the training, in JSON types.
        made_with: Values that must be the same when the checkpoint is loaded, by name.

    Raises:
        UserError: The file cannot be written. Then `path` stays as it was.
    """
    head = {"version": VERSION, "made_with": dict(made_with), **state}
    with atomic_write(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        _write_array(archive, "state", np.array(json.dumps(head)))
        for variable in variables:
            _write_array(archive, variable.path, np.asarray(variable.numpy()))


def load_checkpoint(
    path: str | os.PathLike, variables: Iterable[keras.Variable], made_with: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Assigns the variables from a checkpoint and returns the state stored in it.

    Args:
        path: The file.
        variables: Variables to assign; the checkpoint may hold more.
        made_with: Values to compare with those in the checkpoint, by name. A name that only one of them has is ignored.

    Raises:
        UserError: The file is missing, damaged or of another version; a value of `made_with` differs; or a variable is
            missing or has another shape or type. Then no variable is assigned.
    """
    variables = list(variables)
    made_with = json.loads(json.dumps(dict(made_with)))  # tuples become lists, as in the checkpoint
    head, arrays = _read(path, [variable.path for variable in variables])
    version, needs = head.pop("version", VERSION), head.pop("made_with", {})
    if version != VERSION:
        raise UserError(
            f"{path} has version {version}, but this nmt reads version {VERSION}; use the nmt that wrote it"
        )
    if others := [name for name, value in needs.items() if name in made_with and made_with[name] != value]:
        raise UserError(f"{path} was made with another {', another '.join(others)}; restore the original")
    for variable in variables:
        found = arrays.get(variable.path)
        if found is None or found.shape != tuple(variable.shape) or found.dtype != variable.dtype:
            wanted = f"{variable.dtype} {list(variable.shape)}"
            actual = "is missing" if found is None else f"is {found.dtype} {list(found.shape)}"
            raise UserError(
                f"{variable.path} {actual} in {path}, but {wanted} in the model; "
                "use the vocabularies and the configuration of its training"
            )
    for variable in variables:
        variable.assign(arrays[variable.path])
    return head


def kept_checkpoints(directory: Path) -> list[Path]:
    """Returns the models that a training kept, the latest last."""
    found = [path for path in (directory / KEPT).glob("*.npz") if path.stem.isdecimal()]
    return sorted(found, key=lambda path: int(path.stem))


def _read(path: str | os.PathLike, names: list[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns the head of a checkpoint, and those arrays of `names` that it has."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
            head = dict(json.loads(str(saved["state"])))
            return head, {name: saved[name] for name in names if name in saved}
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}; `python -m nmt train` makes one") from None
    except Exception as error:  # the zip reader raises many types for a damaged file
        raise UserError(f"{path} is damaged or not a checkpoint: {error}; copy it again") from None


def _write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    """Writes an array as `numpy.savez` does, which itself leaves the archive open when the disk is full."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
