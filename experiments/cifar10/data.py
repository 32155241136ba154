"""Reads CIFAR-10 and whitens it."""

from pathlib import Path

import keras
import numpy as np

from nmt.errors import UserError

from ..data_sets.arrays import Labelled, Parts, divide, download, read_arrays

NAMES = ("x_train", "y_train", "x_test", "y_test")
VALID = 0.1  # share of the training images that validate
_REGULARIZER = 1e-5  # added to the variances before whitening


def read_cifar10(data: str = "") -> Parts:
    """Reads and whitens the data. Without a file, `keras.datasets` downloads it.

    Pixels become `(x - 127.5) / 128`. Zero-phase component analysis (ZCA) of the training images
    then makes all components uncorrelated with variance 1. The last tenth of the training images
    validates.

    Args:
        data: An .npz file with the arrays of `NAMES`, or a folder that has one such file.

    Raises:
        UserError: The file is missing or is another one, or the download failed.
    """
    load = keras.datasets.cifar10.load_data
    give = "an .npz file: DATA=/path/to.npz"
    arrays = _from_file(Path(data)) if data else download("CIFAR-10", load, give)
    images, classes, test_images, test_classes = arrays
    training = len(images) - int(VALID * len(images))
    whiten = zca(_scaled(images[:training]))
    train = Labelled(whiten(_scaled(images)), classes.reshape(-1).astype(np.int32))
    test = Labelled(whiten(_scaled(test_images)), test_classes.reshape(-1).astype(np.int32))
    return divide(train, test, training)


def zca(images: np.ndarray):
    """Returns the function that whitens images, fitted to these ones `[images, ...]`.

    Reference: Krizhevsky (2009), Learning multiple layers of features from tiny images, appendix A.
    """
    flat = images.reshape(len(images), -1).astype(
        np.float64
    )  # eigh needs it: the variances differ by a factor of 10^6
    mean = flat.mean(0)
    variances, components = np.linalg.eigh((flat - mean).T @ (flat - mean) / len(flat))
    rotation = (
        (components / np.sqrt(np.maximum(variances, 0) + _REGULARIZER)) @ components.T
    ).astype(np.float32)
    mean = mean.astype(np.float32)

    def whiten(x: np.ndarray) -> np.ndarray:
        return ((x.reshape(len(x), -1) - mean) @ rotation).reshape(x.shape).astype(np.float32)

    return whiten


def _scaled(images: np.ndarray) -> np.ndarray:
    return ((images.astype(np.float32) - 127.5) / 128).astype(np.float32)


def _from_file(path: Path) -> list[np.ndarray]:
    arrays = list(read_arrays(path, NAMES).values())
    for images, classes in (arrays[:2], arrays[2:]):
        if (
            images.ndim != 4
            or images.shape[3] != 3
            or images.dtype != np.uint8
            or len(images) != classes.size
        ):
            raise UserError(
                f"{path} has images {images.shape} of {images.dtype} and {classes.size} classes; it needs bytes "
                "[images, height, width, 3] and as many classes"
            )
    return arrays
