"""Checkpoints: one `.npz` file of arrays by name, and the state of the training as JSON in it.

A file is written aside and renamed, so that a name always holds a whole checkpoint; reading one runs no code of it.
"""

import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from .errors import UserError

BEST, LAST = "best.npz", "last.npz"  # of a training: after the best validation, and after the last


def save_checkpoint(path: str | os.PathLike, variables: Iterable[keras.Variable], state: dict[str, Any]) -> None:
    """Writes the variables, under their paths, and the state of the training."""
    arrays = {variable.path: variable.numpy() for variable in variables}
    aside = Path(f"{path}.part")
    with aside.open("wb") as file:
        np.savez(file, state=np.array(json.dumps(state)), **arrays)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def load_checkpoint(path: str | os.PathLike, variables: Iterable[keras.Variable]) -> dict[str, Any]:
    """Sets the variables to those of a checkpoint, which may hold more, and returns its state.

    Raises:
        UserError: The file is missing or damaged, or lacks a variable or has it in another shape. Then none is set.
    """
    variables = list(variables)
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
            state = json.loads(str(saved["state"]))
            arrays = {variable.path: saved[variable.path] for variable in variables if variable.path in saved}
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}; `python -m nmt train` makes one") from None
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is damaged or no checkpoint: {error}") from None
    for variable in variables:
        found = arrays.get(variable.path)
        if found is None or found.shape != tuple(variable.shape):
            what = "lacks it" if found is None else f"has it in shape {list(found.shape)}"
            raise UserError(
                f"the model has {variable.path} in shape {list(variable.shape)}, and {path} {what}; "
                "use the vocabularies and the configuration it was trained with"
            )
    for variable in variables:
        variable.assign(arrays[variable.path])
    return state
