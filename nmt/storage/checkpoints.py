"""Reads and writes checkpoints: `.npz` files of arrays by name, and of a training's state in JSON.

Nothing in them is pickled.
"""

import contextlib
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import keras
import numpy as np

from ..errors import UserError
from .files import atomic_write, open_inside, path_inside

BEST = "best.npz"  # the best model
LAST = "last.npz"  # the checkpoint that a training resumes from
KEPT = "kept"  # a directory of models, by update
VERSION = 1


class Stored(NamedTuple):
    """A value to save as that of a variable."""

    path: str  # of the variable
    numpy: Callable[[], np.ndarray]


def save_checkpoint(
    path: str | os.PathLike,
    variables: Iterable[keras.Variable | Stored],
    state: dict[str, Any],
    fingerprint: Mapping[str, Any],
) -> None:
    """Writes a checkpoint. It is only loaded where the values of `fingerprint` are the same."""
    head = {"version": VERSION, "fingerprint": dict(fingerprint), **state}
    with atomic_write(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        _write_array(archive, "state", np.array(json.dumps(head)))
        for variable in variables:
            _write_array(archive, variable.path, np.asarray(variable.numpy()))


def load_checkpoint(
    path: str | os.PathLike, variables: Iterable[keras.Variable], fingerprint: Mapping[str, Any]
) -> dict[str, Any]:
    """Assigns the variables from a checkpoint and returns the state stored in it.

    The file may come from an untrusted source: no array is read before its shape and type are those
    of a variable. After an error, no variable is assigned.

    Args:
        path: The file.
        variables: Those to assign; the checkpoint may hold more.
        fingerprint: Values to compare with those in the checkpoint, by name. A name that only one
            of them has is ignored.
    """
    variables = list(variables)
    # Tuples become lists, as in the checkpoint.
    fingerprint = json.loads(json.dumps(dict(fingerprint)))
    with open_archive(path) as archive:
        head = json.loads(str(read_array(archive, "state")))
        if not isinstance(head, dict) or not isinstance(head.get("fingerprint", {}), dict):
            raise ValueError("its state is no JSON object")
        version = head.pop("version", VERSION)
        needs = head.pop("fingerprint", {})
        if version != VERSION:
            raise UserError(
                f"{path} has version {version}, but this nmt reads version {VERSION}; use the nmt "
                "that wrote it"
            )
        others = [name for name in needs if needs[name] != fingerprint.get(name, needs[name])]
        if others:
            raise UserError(
                f"{path} was made with another {', another '.join(others)}; restore the original"
            )
        for variable in variables:
            shape, dtype = read_header(archive, variable.path)
            if shape != tuple(variable.shape) or dtype != variable.dtype:
                wanted = f"{variable.dtype} {list(variable.shape)}"
                actual = "is missing" if shape is None else f"is {dtype} {list(shape)}"
                raise UserError(
                    f"{variable.path} {actual} in {path}, but {wanted} in the model; "
                    "use the vocabularies and the configuration of its training"
                )
        arrays = [read_array(archive, variable.path) for variable in variables]
    for variable, array in zip(variables, arrays, strict=True):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UserError(
                f"{variable.path} in {path} is not finite; its training diverged, so use another "
                "checkpoint"
            )
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return head


def checkpoint_size(path: str | os.PathLike) -> tuple[int, int]:
    """Returns how many arrays a checkpoint has, and how many float32 numbers fit in its file."""
    with open_archive(path) as archive:  # no array is compressed, and headers may say anything
        return len(archive.namelist()) - 1, Path(path).stat().st_size // 4


def kept_checkpoints(directory: Path) -> list[Path]:
    """Returns the models that a training kept, the latest last."""
    models = path_inside(directory / KEPT, directory).glob("*.npz")
    return sorted(
        (path for path in models if path.stem.isdecimal()), key=lambda path: int(path.stem)
    )


@contextlib.contextmanager
def open_archive(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
    """Opens a checkpoint, and raises `UserError` for whatever is wrong with it."""
    path = Path(path)
    try:
        with open_inside(path, path.parent) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}; `python -m nmt train` makes one") from None
    except Exception as error:  # the zip reader raises many types for a damaged file
        raise UserError(f"{path} is damaged or not a checkpoint: {error}; copy it again") from None


def read_header(
    archive: zipfile.ZipFile, name: str
) -> tuple[tuple[int, ...] | None, np.dtype | None]:
    """Returns shape and type of an array, or `None` for both if there is none."""
    if f"{name}.npy" not in archive.NameToInfo:
        return None, None
    with _open_array(archive, name) as (_, shape, _, dtype):
        return shape, dtype


def read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with _open_array(archive, name) as (file, shape, order, dtype):
        content = file.read()  # to the end, where its checksum is compared
    return np.frombuffer(content, dtype).reshape(shape, order=order)


@contextlib.contextmanager
def _open_array(
    archive: zipfile.ZipFile, name: str
) -> Iterator[tuple[IO[bytes], tuple[int, ...], str, np.dtype]]:
    """Opens an array.

    Yields the file, which is then at the numbers, and their shape, order and type.
    """
    info = archive.getinfo(f"{name}.npy")
    # A compressed one could have a thousand times the size of the file.
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError("it is compressed")
    # The headers that `save_checkpoint` writes.
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with archive.open(info) as file:
        shape, is_fortran, dtype = read[np.lib.format.read_magic(file)](file)
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        yield file, shape, "F" if is_fortran else "C", dtype


def _write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    """Writes an array as `numpy.savez` does, but closes the archive when the disk is full."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
