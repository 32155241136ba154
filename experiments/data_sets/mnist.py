"""Reads MNIST from the four original files, or downloads it."""

import zlib
from pathlib import Path

import keras
import numpy as np

from nmt.errors import UserError

from .arrays import Labelled, Parts, divide, download
from .files import find_files, read_bytes

TRAINING = 55_000  # images to train on; the other 5,000 of the training set are for validation
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def read_mnist(data: str = "", training: int = TRAINING) -> Parts:
    """Reads the data from a folder. Without a folder, `keras.datasets` downloads the data.

    Images are `[images, pixels]`, in 0 to 1.

    Args:
        data: A folder with the four files of yann.lecun.com/exdb/mnist, as they are or with `.gz`.
        training: Number of images to train on; the others of the training set are for validation.

    Raises:
        UserError: A file is missing or is not an IDX file or belongs to other data, or the download
            failed.
    """
    load = keras.datasets.mnist.load_data
    give = "its folder: DATA=/path/to/mnist"
    arrays = (
        [_read_idx(path) for path in find_files(Path(data), FILES)]
        if data
        else download("MNIST", load, give)
    )
    images, classes, test_images, test_classes = arrays
    if len(images) != len(classes) or len(test_images) != len(test_classes):
        raise UserError(
            f"{data} has {len(images)} and {len(test_images)} images, but {len(classes)} and {len(test_classes)} "
            "classes; download its files again"
        )
    return divide(_part(images, classes), _part(test_images, test_classes), training)


def _part(images: np.ndarray, classes: np.ndarray) -> Labelled:
    flat = images.reshape(len(images), -1)  # [images, pixels]
    return Labelled(flat.astype(np.float32) / 255, classes.astype(np.int32))


def _read_idx(path: Path) -> np.ndarray:
    """Returns the array of bytes in an IDX file: magic number, sizes, data."""
    try:
        content = read_bytes(path)
        zeros = content[:2]
        kind = content[2]
        dimensions = content[3]
        sizes = np.frombuffer(content, ">i4", dimensions, 4)
        if zeros != b"\0\0" or kind != 8:
            raise ValueError("its magic number is another one")
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(sizes)
    except (OSError, EOFError, ValueError, IndexError, zlib.error) as error:
        raise UserError(f"{path} is not an IDX file of bytes: {error}; download it again") from None
