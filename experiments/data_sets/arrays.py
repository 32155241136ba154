"""The parts of a data set, and the files and downloads that their arrays come from."""

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.errors import UserError


class Parts(NamedTuple):
    """The parts of a data set; `test` is `None` if it has none."""

    train: Any
    valid: Any
    test: Any = None


class Labelled(NamedTuple):
    """Images `[images, ...]`, float32, and their classes `[images]`."""

    images: np.ndarray
    classes: np.ndarray


def divide(images: Labelled, test: Labelled, training: int) -> Parts:
    """Returns the parts of a data set: the first images train, the others before those of the
    test validate."""
    return Parts(
        Labelled(*(each[:training] for each in images)),
        Labelled(*(each[training:] for each in images)),
        test,
    )


def download(name: str, load: Callable[[], Any], give: str) -> list[np.ndarray]:
    """Returns images and classes to train on, and those of the test.

    Args:
        name: Name of the data set.
        load: A `load_data` of `keras.datasets`.
        give: What to give as DATA instead, with an example.

    Raises:
        UserError: The download failed.
    """
    try:
        (images, classes), (test_images, test_classes) = load()
    except Exception as error:  # keras raises a bare Exception
        raise UserError(f"{name} cannot be downloaded: {error}; give {give}") from None
    return [images, classes, test_images, test_classes]


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz file, or of the only one in a folder.

    Raises:
        UserError: There is no such file, or it lacks an array or cannot be read.
    """
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if len(files) != 1 or not files[0].is_file():
        raise UserError(
            f"{path} must be an .npz file with {', '.join(names)}, or a folder with one such file"
        )
    try:
        with np.load(files[0], allow_pickle=False) as found:
            return {name: found[name] for name in names}
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise UserError(
            f"{files[0]} is not an .npz file with {', '.join(names)}: {error}"
        ) from None
