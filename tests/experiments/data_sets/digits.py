"""A data set in place of MNIST: noisy images of 16 pixels, whose class is the brightest of the
first ten pixels."""

import gzip

import numpy as np
import pytest

from experiments.data_sets.mnist import FILES

SIZES = {"train": 80, "t10k": 20}


@pytest.fixture
def folder(tmp_path):
    """The four files, two of them compressed."""
    origin = tmp_path / "digits"
    origin.mkdir()
    generator = np.random.default_rng(0)
    for name in FILES:
        part = name.split("-")[0]
        classes = np.arange(SIZES[part]) % 10
        images = generator.integers(0, 100, (SIZES[part], 4, 4))
        images.reshape(-1, 16)[np.arange(SIZES[part]), classes] = 255
        array = images if "images" in name else classes
        content = (
            bytes([0, 0, 8, array.ndim])
            + np.array(array.shape, ">i4").tobytes()
            + array.astype(np.uint8).tobytes()
        )
        path = origin / name
        if "images" in name:
            path.with_name(f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            path.write_bytes(content)
    return origin
