"""Files of arrays that may be hostile: safetensors, HDF5, NumPy's npz.

Names, types and shapes are read first, each array only when it is asked for.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - makes bfloat16 known to NumPy
import numpy as np

from ..errors import UserError
from ..storage.checkpoints import open_archive, read_array, read_header
from .arrays import Arrays

_GROUPS = 10_000  # that a file may have
# The last parts of names in files of TensorFlow -> those of PyTorch.
_OF_TENSORFLOW = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}


def open_safetensors(path: Path, shards: Sequence[Path]) -> Arrays:
    """Opens the files over which safetensors spreads the arrays of a model; `path` names them all."""
    from safetensors import safe_open

    shapes = {}
    places = {}
    for shard in shards:
        with _name_damage(shard), safe_open(shard, "numpy") as file:
            for name in file.keys():  # noqa: SIM118 - it is no dictionary
                found = file.get_slice(name)
                kind = found.get_dtype()
                if kind not in ("F32", "F16", "BF16"):
                    raise UserError(
                        f"{shard} has {name} in {kind}; only F32, F16 and BF16 can be imported"
                    )
                shapes[name] = tuple(found.get_shape())
                places[name] = shard

    def read(name: str) -> np.ndarray:
        # Opened anew, because what a mapped file has read stays in memory while it is open.
        with safe_open(places[name], "numpy") as file:
            return file.get_tensor(name)

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
    """Opens an uncompressed file of NumPy; `special:` arrays keep their bytes."""
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
    """Returns arrays that are finite, in float32, and `[n]` where the file has `[1, n]`."""
    flat = {
        name: shape[1:] if len(shape) == 2 and shape[0] == 1 else shape
        for name, shape in shapes.items()
    }

    def checked(name: str) -> np.ndarray:
        with _name_damage(path):
            array = read(name).reshape(flat[name])
        if name.startswith("special:"):
            return array
        array = array.astype(np.float32, copy=False)
        if not np.isfinite(array).all():
            raise UserError(f"{path} has values in {name} that are not finite; copy it again")
        return array

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
