"""Reads CIFAR-10 and whitens it."""

import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from nmt.errors import UserError

NAMES = ("x_train", "y_train", "x_test", "y_test")
VALID = 0.1  # share of the training images that validate
_REGULARIZER = 1e-5  # added to the variances before whitening


class Part(NamedTuple):
    """Whitened images `[images, height, width, 3]`, float32, and their classes `[images]`."""

    images: np.ndarray
    classes: np.ndarray


class Cifar10(NamedTuple):
    """The three parts of the data."""

    train: Part
    valid: Part
    test: Part


def read_cifar10(data: str = "") -> Cifar10:
    """Reads and whitens the data. Without a file, `keras.datasets` downloads it.

    Pixels become `(x - 127.5) / 128`. Zero-phase component analysis (ZCA) of the training images then makes all
    components uncorrelated with variance 1. The last tenth of the training images validates.

    Args:
        data: An .npz file with the arrays of `NAMES`, or a folder that has one such file.

    Raises:
        UserError: The file is missing or is another one, or the download failed.
    """
    images, classes, test_images, test_classes = _from_file(Path(data)) if data else _download()
    training = len(images) - int(VALID * len(images))
    whiten = zca(_scaled(images[:training]))
    train = Part(whiten(_scaled(images)), classes.reshape(-1).astype(np.int32))
    test = Part(whiten(_scaled(test_images)), test_classes.reshape(-1).astype(np.int32))
    return Cifar10(Part(*(each[:training] for each in train)), Part(*(each[training:] for each in train)), test)


def zca(images: np.ndarray):
    """Returns the function that whitens images, fitted to these ones `[images, ...]`.

    Reference: Krizhevsky (2009), Learning multiple layers of features from tiny images, appendix A.
    """
    flat = images.reshape(len(images), -1).astype(np.float64)  # eigh needs it: the variances differ by a factor of 10^6
    mean = flat.mean(0)
    variances, components = np.linalg.eigh((flat - mean).T @ (flat - mean) / len(flat))
    rotation = ((components / np.sqrt(np.maximum(variances, 0) + _REGULARIZER)) @ components.T).astype(np.float32)
    mean = mean.astype(np.float32)

    def whiten(x: np.ndarray) -> np.ndarray:
        return ((x.reshape(len(x), -1) - mean) @ rotation).reshape(x.shape).astype(np.float32)

    return whiten


def _scaled(images: np.ndarray) -> np.ndarray:
    return ((images.astype(np.float32) - 127.5) / 128).astype(np.float32)


def _download() -> list[np.ndarray]:
    try:
        (images, classes), (test_images, test_classes) = keras.datasets.cifar10.load_data()
    except Exception as error:  # keras raises a bare Exception
        raise UserError(f"CIFAR-10 cannot be downloaded: {error}; give an .npz file: DATA=/path/to.npz") from None
    return [images, classes, test_images, test_classes]


def _from_file(path: Path) -> list[np.ndarray]:
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if len(files) != 1 or not files[0].is_file():
        raise UserError(f"{path} must be an .npz file with {', '.join(NAMES)}, or a folder with one such file")
    try:
        with np.load(files[0], allow_pickle=False) as found:
            arrays = [found[name] for name in NAMES]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{files[0]} is not an .npz file with {', '.join(NAMES)}: {error}") from None
    for images, classes in (arrays[:2], arrays[2:]):
        if images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8 or len(images) != classes.size:
            raise UserError(
                f"{files[0]} has images {images.shape} of {images.dtype} and {classes.size} classes; it needs bytes "
                "[images, height, width, 3] and as many classes"
            )
    return arrays
