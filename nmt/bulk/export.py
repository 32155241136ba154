"""An export: a SavedModel that maps sentences to translations."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from types import ModuleType

from ..errors import UserError
from ..load_tensorflow import load_tensorflow
from . import storage
from .isolation import reason_of

_SIGNATURE = "serving_default"
_INPUT, _OUTPUT = "sources", "translations"
_GRAPH = "saved_model.pb"


def require_export(path: str) -> None:
    """Checks that a folder has a SavedModel.

    Raises:
        UserError: It has none.
    """
    if not storage.exists(f"{path}/{_GRAPH}"):
        raise UserError(f"{path} has no {_GRAPH}; give a folder that `python -m nmt export` wrote")


def fingerprint(path: str) -> str:
    """Returns a digest of an export, without its `assets.extra`.

    The data of the variables are not read, because their index holds a checksum of each.
    """
    digest = hashlib.sha256()
    for each in _files(path):
        if each.startswith(("assets.extra/", "variables/variables.data")):
            continue
        with storage.open_text(f"{path}/{each}") as file:
            digest.update(f"{each}\n".encode() + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


class Export:
    """A loaded export.

    Args:
        path: Its folder.

    Raises:
        UserError: It cannot be loaded, or it does not translate.
    """

    def __init__(self, path: str):
        try:
            with _local(path) as folder:
                self._tf = load_tensorflow()
                import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

                _share_gpus(self._tf)
                self._loaded = self._tf.saved_model.load(folder)  # owns the variables
            self._translate = self._loaded.signatures[_SIGNATURE]
            self([b""])
        except Exception as error:  # a damaged SavedModel fails in many ways
            raise UserError(f"{path} cannot be used: {reason_of(error)}") from None

    def __call__(self, lines: Sequence[bytes]) -> list[bytes]:
        """Returns the translation of each line."""
        found = self._translate(**{_INPUT: self._tf.constant(lines, self._tf.string)})[_OUTPUT].numpy().tolist()
        if len(found) != len(lines):
            raise ValueError(f"the model returns {len(found)} translations of {len(lines)} lines")
        return found


def _share_gpus(tf: ModuleType) -> None:
    """Makes TensorFlow take the memory of GPUs as it needs it, because several processes load the export."""
    with contextlib.suppress(RuntimeError):  # it is in use already
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, enable=True)


def _files(path: str) -> list[str]:
    """Returns the names of all files of a folder, relative to it."""
    return [each.path.removeprefix(path).lstrip("/\\") for each in storage.find(f"{path}/**")]


@contextlib.contextmanager
def _local(path: str) -> Iterator[str]:
    """Yields a local folder with the files of another one, because TensorFlow itself reads no object store."""
    if "://" not in path:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        for each in _files(path):
            target = os.path.join(folder, each)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with storage.open_text(f"{path}/{each}") as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy)
        yield folder
