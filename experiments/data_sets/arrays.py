"""Reads images from `.npz` files or downloads them, and divides them into parts."""

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from nmt.errors import UserError

_IMAGES = ("x_train", "y_train", "x_test", "y_test")
# Images of MNIST to train on; the other 5,000 of the training set are for validation.
TRAINING = 55_000
_DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)


class Parts(NamedTuple):
    """The parts of a data set; `test` is `None` if it has none."""

    train: Any
    valid: Any
    test: Any = None


class Labelled(NamedTuple):
    """Images `[images, ...]`, float32, and their classes `[images]`."""

    images: np.ndarray
    classes: np.ndarray


def read_images(data: str, load: Callable[[], Any], dimensions: int) -> list[np.ndarray]:
    """Returns images and classes to train on, and those of the test.

    Args:
        data: An .npz file with `x_train`, `y_train`, `x_test` and `y_test`, or a folder with one
            such file. An empty string downloads the data.
        load: A `load_data` of `keras.datasets`.
        dimensions: Dimensions of the arrays of images.

    Raises:
        UserError: The file is missing or is another one, or the download failed.
    """
    if data:
        arrays = list(read_arrays(Path(data), _IMAGES).values())
    else:
        try:
            train, test = load()
        except Exception as error:  # keras raises a bare Exception
            raise UserError(f"no download: {error}; give an .npz file: DATA=/path/to.npz") from None
        arrays = [*train, *test]
    for images, classes in (arrays[:2], arrays[2:]):
        is_image = images.ndim == dimensions and images.dtype == np.uint8
        if not is_image or len(images) != classes.size:
            raise UserError(
                f"{data} has images {images.shape} of {images.dtype} and {classes.size} classes; "
                f"it needs bytes in {dimensions} dimensions and as many classes"
            )
    return arrays


def divide(images: Labelled, test: Labelled, training: int) -> Parts:
    """Returns the parts of a data set.

    The first images train; the others before those of the test validate.
    """
    return Parts(
        Labelled(*(each[:training] for each in images)),
        Labelled(*(each[training:] for each in images)),
        test,
    )


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz file, or of the only one in a folder.

    Raises:
        UserError: There is no such file, or it lacks an array or cannot be read.
    """
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    wanted = f"an .npz file with {', '.join(names)}"
    if len(files) != 1 or not files[0].is_file():
        raise UserError(f"{path} must be {wanted}, or a folder with one such file")
    try:
        with np.load(files[0], allow_pickle=False) as found:
            return {name: found[name] for name in names}
    except _DAMAGED as error:
        raise UserError(f"{files[0]} is not {wanted}: {error}") from None


def read_mnist(data: str = "", training: int = TRAINING) -> Parts:
    """Reads images `[images, pixels]`, in 0 to 1, and their classes.

    Args:
        data: As for `read_images`.
        training: Number of images to train on; the others of the training set are for validation.

    Raises:
        UserError: The file is missing or is another one, or the download failed.
    """
    arrays = read_images(data, keras.datasets.mnist.load_data, dimensions=3)
    return divide(_part(*arrays[:2]), _part(*arrays[2:]), training)


def _part(images: np.ndarray, classes: np.ndarray) -> Labelled:
    flat = images.reshape(len(images), -1)  # [images, pixels]
    return Labelled(flat.astype(np.float32) / 255, classes.astype(np.int32))
