"""A data set in place of MNIST: noisy images of 16 pixels.

The class of an image is the brightest of its first ten pixels.
"""

import numpy as np
import pytest

SIZES = {"train": 80, "test": 20}


@pytest.fixture
def digits(tmp_path):
    """An .npz file like that of Keras."""
    generator = np.random.default_rng(0)
    arrays = {}
    for part, size in SIZES.items():
        classes = np.arange(size) % 10
        images = generator.integers(0, 100, (size, 16))
        images[np.arange(size), classes] = 255
        arrays[f"x_{part}"] = images.reshape(size, 4, 4).astype(np.uint8)
        arrays[f"y_{part}"] = classes.astype(np.uint8)
    path = tmp_path / "digits.npz"
    np.savez(path, **arrays)
    return path
