"""Reads CIFAR-10 and whitens it."""

import keras
import numpy as np

from ..data_sets.arrays import Labelled, Parts, divide, read_images

VALID = 0.1  # share of the training images that validate
_REGULARIZER = 1e-5  # added to the variances before whitening


def read_cifar10(data: str = "") -> Parts:
    """Reads and whitens the data.

    Pixels become `(x - 127.5) / 128`. Zero-phase component analysis (ZCA) of the training images
    then makes all components uncorrelated with variance 1. The last tenth of the training images
    validates.

    Args:
        data: As for `read_images`.

    Raises:
        UserError: The file is missing or is another one, or the download failed.
    """
    arrays = read_images(data, keras.datasets.cifar10.load_data, dimensions=4)
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
    # In float64, because the variances differ by a factor of 10^6.
    flat = images.reshape(len(images), -1).astype(np.float64)
    mean = flat.mean(0)
    variances, components = np.linalg.eigh((flat - mean).T @ (flat - mean) / len(flat))
    scaled = components / np.sqrt(np.maximum(variances, 0) + _REGULARIZER)
    rotation = (scaled @ components.T).astype(np.float32)
    mean = mean.astype(np.float32)

    def whiten(x: np.ndarray) -> np.ndarray:
        return ((x.reshape(len(x), -1) - mean) @ rotation).reshape(x.shape).astype(np.float32)

    return whiten


def _scaled(images: np.ndarray) -> np.ndarray:
    return ((images.astype(np.float32) - 127.5) / 128).astype(np.float32)
