import keras
import numpy as np
import pytest

from experiments.data_sets.arrays import read_mnist
from nmt.errors import UserError


@pytest.fixture
def mnist(digits):
    return read_mnist(str(digits), training=60)


def test_sizes_of_the_parts_and_range_of_the_pixels(mnist):
    assert [part.images.shape for part in mnist] == [(60, 16), (20, 16), (20, 16)]
    assert mnist.train.images.dtype == np.float32
    assert mnist.train.images.min() >= 0
    assert mnist.train.images.max() == 1


def test_images_and_classes_belong_together(mnist):
    for part in mnist:
        np.testing.assert_array_equal(part.images.argmax(1), part.classes)


def test_without_data_keras_downloads_it(digits, monkeypatch):
    with np.load(digits) as found:
        halves = (found["x_train"], found["y_train"]), (found["x_test"], found["y_test"])
    monkeypatch.setattr(keras.datasets.mnist, "load_data", lambda: halves)
    np.testing.assert_array_equal(read_mnist().test.images, read_mnist(str(digits)).test.images)


def test_a_failed_download_says_what_to_give(monkeypatch):
    def fail():
        raise Exception("no network")

    monkeypatch.setattr(keras.datasets.mnist, "load_data", fail)
    with pytest.raises(UserError, match="no network; give"):
        read_mnist()


def test_different_numbers_of_images_and_classes_are_refused(digits):
    with np.load(digits) as found:
        arrays = dict(found)
    np.savez(digits, **{**arrays, "y_train": arrays["y_test"]})
    with pytest.raises(UserError, match=r"\(80, 4, 4\) of uint8 and 20 classes"):
        read_mnist(str(digits))
