"""A data set in place of CIFAR-10: noisy images of 16 x 16 pixels.

The brightness of their rows tells their class.
"""

import numpy as np
import pytest

SIZES = {"train": 40, "test": 20}


@pytest.fixture
def file(tmp_path):
    """An .npz file like those that DATA names."""
    generator = np.random.default_rng(0)
    arrays = {}
    for part, size in SIZES.items():
        classes = np.arange(size) % 10
        images = generator.integers(0, 60, (size, 16, 16, 3))
        images[np.arange(size), classes] += 150
        arrays |= {f"x_{part}": images.astype(np.uint8), f"y_{part}": classes.astype(np.uint8)}
    path = tmp_path / "images.npz"
    np.savez(path, **arrays)
    return path
