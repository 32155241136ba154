"""Opens files of arrays that may be hostile: safetensors, HDF5, NumPy's npz.

Names, types and shapes are read first, each array only when it is asked for.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
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
    """Opens the files over which safetensors spreads the arrays of a model; `path` names all."""
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
            kind = entry["dtype"]
            if kind not in _TYPES:
                raise UserError(
                    f"{shard} has {name} in {kind}; only {', '.join(_TYPES)} can be imported"
                )
            shapes[name] = tuple(entry["shape"])
            places[name] = (shard, _TYPES[kind], 8 + length + entry["data_offsets"][0])

    def read(name: str) -> np.ndarray:
        """Maps an array: a copy would need its memory twice."""
        shard, kind, begin = places[name]
        return np.memmap(shard, kind, "r", begin, shapes[name])

    return Arrays(path, shapes, read)


def open_hdf5(path: Path) -> Arrays:
    """Opens a file of TensorFlow; its arrays get the names and shapes of PyTorch."""
    import h5py

    places = {}
    shapes = {}
    with _name_damage(path), h5py.File(path, "r") as file:
        for each in _datasets(file):
            is_plain = not each.external and not each.is_virtual and each.dtype.kind == "f"
            if not is_plain or each.id.get_storage_size() < each.nbytes:
                raise UserError(
                    f"{path} has {each.name}, which is no plain array of numbers; copy it again"
                )
            name = _name_of(each.name)
            places[name] = each.name
            shapes[name] = each.shape[::-1] if _is_kernel(each.name) else each.shape

    def read(name: str) -> np.ndarray:
        with _name_damage(path), h5py.File(path, "r") as file:
            array = file[places[name]][()]
        return array.T if _is_kernel(places[name]) else array

    return Arrays(path, shapes, read)


def _datasets(file: Any) -> Iterator[Any]:
    """Yields the arrays of an HDF5 file but those of its optimizer, without following links."""
    import h5py

    groups = [file]
    for group in groups:  # which grows
        for name in group:
            is_inside = isinstance(group.get(name, getlink=True), h5py.HardLink)
            each = group[name] if is_inside else None
            if isinstance(each, h5py.Dataset):
                yield each
            elif isinstance(each, h5py.Group) and each.name != "/optimizer_weights":
                groups.append(each)
        if len(groups) > _GROUPS:
            raise ValueError(f"it has more than {_GROUPS} groups")


def _is_kernel(path: str) -> bool:
    return path.removesuffix(":0").endswith("/kernel")


def _name_of(path: str) -> str:
    """Returns the name in PyTorch of a weight in a file of TensorFlow."""
    name = path.removesuffix(":0").replace("/", ".")
    name = re.sub(r".*(model\.(?:encoder|decoder|shared)\b|\bfinal_logits_bias$)", r"\1", name)
    stem, dot, last = name.rpartition(".")
    return f"{stem}{dot}{_OF_TENSORFLOW.get(last, last)}"


def open_npz(path: Path) -> Arrays:
    """Opens an uncompressed file of NumPy. `special:` arrays hold bytes."""
    shapes = {}
    with open_archive(path) as archive:
        for name in (each.removesuffix(".npy") for each in archive.namelist()):
            shape, kind = read_header(archive, name)
            if shape is None or (kind.kind != "f" and not name.startswith("special:")):
                raise UserError(
                    f"{path} has {name} in {kind}; give the model before it was quantized or packed"
                )
            shapes[name] = shape

    def read(name: str) -> np.ndarray:
        with open_archive(path) as archive:
            return read_array(archive, name)

    return Arrays(path, shapes, read)


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
