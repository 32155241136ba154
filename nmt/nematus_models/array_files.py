"""Files of arrays that may be hostile: safetensors, HDF5, NumPy's npz.

Names, types and shapes are read first, each array only when it is asked for.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import UserError
from ..storage.checkpoints import open_archive, read_array, read_header
from .arrays import Arrays

_TYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(ml_dtypes.bfloat16)}
_GROUPS = 10_000  # that a file may have
# The last parts of names in files of TensorFlow -> those of PyTorch.
_OF_TENSORFLOW = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}


def open_safetensors(path: Path, shards: Sequence[Path]) -> Arrays:
    """Opens the files over which safetensors spreads the arrays of a model; `path` names them all."""
    from safetensors import safe_open

    shapes = {}
    places = {}
    for shard in shards:
        with _name_damage(shard), safe_open(shard, "numpy"), shard.open("rb") as file:
            # The library has checked that the head is sound and its arrays fill the file.
            length = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(length))
        head.pop("__metadata__", None)
        for name, entry in head.items():
            if entry["dtype"] not in _TYPES:
                raise UserError(
                    f"{shard} has {name} in {entry['dtype']}; only {', '.join(_TYPES)} can be imported"
                )
            shapes[name] = tuple(entry["shape"])
            begin = 8 + length + entry["data_offsets"][0]
            places[name] = shard, _TYPES[entry["dtype"]], begin

    def read(name: str) -> np.ndarray:
        shard, kind, begin = places[name]
        return np.memmap(shard, kind, "r", begin, shapes[name])

    return _checked(path, shapes, read)


def open_hdf5(path: Path) -> Arrays:
    """Opens a file of TensorFlow; its arrays get the names and shapes of PyTorch."""
    import h5py

    places = {}
    shapes = {}
    stored = 0
    with _name_damage(path), h5py.File(path, "r") as file:
        for each in _datasets(file):
            stored += each.nbytes
            if (
                each.external
                or each.is_virtual
                or each.id.get_storage_size() < each.nbytes
                or each.dtype.kind != "f"
            ):
                raise UserError(
                    f"{path} has {each.name}, which is no plain array of numbers; copy it again"
                )
            name = _name_of(each.name)
            places[name] = each.name
            shapes[name] = each.shape[::-1] if _is_kernel(each.name) else each.shape
        if stored > path.stat().st_size:
            raise UserError(f"{path} has arrays of more bytes than the file; copy it again")

    def read(name: str) -> np.ndarray:
        with h5py.File(path, "r") as file:
            array = file[places[name]][()]
        return array.T if _is_kernel(places[name]) else array

    return _checked(path, shapes, read)


def _datasets(file: Any) -> Iterator[Any]:
    """Yields the arrays of an HDF5 file but those of its optimizer, without following links."""
    import h5py

    waiting = [file]
    for _ in range(_GROUPS):
        if not waiting:
            return
        group = waiting.pop()
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            each = group[name]
            if isinstance(each, h5py.Dataset):
                yield each
            elif each.name != "/optimizer_weights":
                waiting.append(each)
    raise ValueError(f"it has more than {_GROUPS} groups")


def _is_kernel(path: str) -> bool:
    return path.removesuffix(":0").endswith("/kernel")


def _name_of(path: str) -> str:
    """Returns the name in PyTorch of a weight in a file of TensorFlow."""
    name = path.removesuffix(":0").replace("/", ".")
    name = re.sub(r".*(model\.(?:encoder|decoder|shared)\b|\bfinal_logits_bias$)", r"\1", name)
    stem, _, last = name.rpartition(".")
    return f"{stem}.{_OF_TENSORFLOW.get(last, last)}" if stem else name


def open_npz(path: Path) -> Arrays:
    """Opens an uncompressed file of NumPy. `special:` arrays hold bytes."""
    with open_archive(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        headers = {name: read_header(archive, name) for name in names}
    for name, (shape, kind) in headers.items():
        if shape is None or (kind.kind != "f" and not name.startswith("special:")):
            raise UserError(
                f"{path} has {name} in {kind}; give the model before it was quantized or packed"
            )

    def read(name: str) -> np.ndarray:
        with open_archive(path) as archive:
            return read_array(archive, name)

    return _checked(path, {name: shape for name, (shape, _) in headers.items()}, read)


def _checked(
    path: Path, shapes: Mapping[str, tuple[int, ...]], read: Callable[[str], np.ndarray]
) -> Arrays:
    """Returns arrays that are `[n]` where the file has `[1, n]`, and whose damage names the file."""
    flat = {
        name: shape[1:] if len(shape) == 2 and shape[0] == 1 else shape
        for name, shape in shapes.items()
    }

    def checked(name: str) -> np.ndarray:
        with _name_damage(path):
            return read(name).reshape(flat[name])

    return Arrays(path, flat, checked)


@contextlib.contextmanager
def _name_damage(path: Path) -> Iterator[None]:
    """Raises `UserError` with the path for anything that a reader raises; they raise many types."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{path} is damaged: {reason}; copy it again") from None
