"""Checkpoints: one `.npz` file of arrays by name, and the state of the training as JSON in it.

A name always holds a whole checkpoint; reading one runs no code of it.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import keras
import numpy as np

from ..errors import UserError
from .files import atomic_write

BEST, LAST = "best.npz", "last.npz"  # of a training: after the best validation, and where it goes on from
VERSION = 1


def save_checkpoint(
    path: str | os.PathLike,
    variables: Iterable[keras.Variable],
    state: dict[str, Any],
    made_with: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes the variables, under their paths, the state of the training, and what must be the same to load them.

    Raises:
        UserError: It cannot be written; what was there before stays.
    """
    head = {"version": VERSION, "made_with": dict(made_with), **state}
    with atomic_write(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        _write_array(archive, "state", np.array(json.dumps(head)))
        for variable in variables:
            _write_array(archive, variable.path, np.asarray(variable.numpy()))


def load_checkpoint(
    path: str | os.PathLike, variables: Iterable[keras.Variable], made_with: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Sets the variables to those of a checkpoint, which may hold more, and returns its state.

    Raises:
        UserError: The file is missing, damaged or of a newer version, was made with something else than `made_with`
            says, or lacks a variable or has it in another shape. Then none is set.
    """
    variables = list(variables)
    head, arrays = _read(path, [variable.path for variable in variables])
    version, needs = head.pop("version", VERSION), head.pop("made_with", {})
    if version != VERSION:
        raise UserError(f"{path} is of version {version}, and this nmt reads {VERSION}; use the nmt that wrote it")
    if others := [name for name, value in needs.items() if name in made_with and made_with[name] != value]:
        raise UserError(f"{path} was made with another {', another '.join(others)}; put back what it was made with")
    for variable in variables:
        found = arrays.get(variable.path)
        if found is None or found.shape != tuple(variable.shape) or found.dtype != variable.dtype:
            wanted = f"as {variable.dtype} in shape {list(variable.shape)}"
            what = "lacks it" if found is None else f"has it as {found.dtype} in shape {list(found.shape)}"
            raise UserError(
                f"the model has {variable.path} {wanted}, and {path} {what}; "
                "use the vocabularies and the configuration it was trained with"
            )
    for variable in variables:
        variable.assign(arrays[variable.path])
    return head


def _read(path: str | os.PathLike, names: list[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns what stands at the head of a checkpoint, and those of the arrays that it has."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
            head = dict(json.loads(str(saved["state"])))
            return head, {name: saved[name] for name in names if name in saved}
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}; `python -m nmt train` makes one") from None
    except Exception as error:  # one flipped bit can make the reader of the archive raise almost anything
        raise UserError(f"{path} is damaged or no checkpoint: {error}") from None


def _write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    """Writes as `numpy.savez` does, which leaves the archive open when the disk is full."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
