import gzip
import shutil

import numpy as np
import pytest

from experiments.data_sets.mnist import read_mnist
from nmt.errors import UserError


@pytest.fixture
def mnist(folder):
    return read_mnist(str(folder), training=60)


def test_sizes_of_the_parts_and_range_of_the_pixels(mnist):
    assert [part.images.shape for part in mnist] == [(60, 16), (20, 16), (20, 16)]
    assert [len(part.classes) for part in mnist] == [60, 20, 20]
    assert mnist.train.images.dtype == np.float32
    assert mnist.train.images.min() >= 0
    assert mnist.train.images.max() == 1


def test_images_and_classes_belong_together(mnist):
    for part in mnist:
        np.testing.assert_array_equal(part.images.argmax(1), part.classes)


def test_different_numbers_of_images_and_classes_are_refused(folder):
    files = {path.name.partition(".")[0]: path for path in folder.iterdir()}
    shutil.copy(files["t10k-labels-idx1-ubyte"], files["train-labels-idx1-ubyte"])
    with pytest.raises(
        UserError, match="has 80 and 20 images, but 20 and 20 classes; download its files again"
    ):
        read_mnist(str(folder))


def test_missing_files_are_named(folder):
    (folder / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(
        UserError, match=r"lacks t10k-images-idx3-ubyte; put these files there, plain or as \.gz"
    ):
        read_mnist(str(folder))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        gzip.compress(b"\0\0\x08\x01\0\0\0\x09abc"),
        gzip.compress(b"\0\0\x0d\x01\0\0\0\0"),
    ],
    ids=[
        "empty",
        "html",
        "truncated",
        "of floats",
    ],  # the default is the bytes, which hold the time
)
def test_a_file_that_is_not_idx_is_refused(folder, content):
    (folder / "train-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(
        UserError, match=r"images-idx3-ubyte\.gz is not an IDX file of bytes: .*; download it again"
    ):
        read_mnist(str(folder))
