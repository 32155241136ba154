import numpy as np
import pytest

from experiments.cifar10.data import read_cifar10, zca
from nmt.errors import UserError


def test_whitened_images_are_uncorrelated_with_variance_1():
    x = np.random.default_rng(0).normal(size=(500, 2, 2, 1)) @ np.ones(
        (1, 2)
    ) + np.random.default_rng(1).normal(size=(500, 2, 2, 2))
    flat = zca(x)(x).reshape(500, -1)
    np.testing.assert_allclose(flat.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(flat.T @ flat / 500, np.eye(8), atol=1e-3)


def test_zca_changes_white_images_only_a_little():
    """Zero-phase: of all matrices that whiten, the symmetric one.

    For white images it is the identity.
    """
    x = np.concatenate([np.eye(4), -np.eye(4)]).reshape(8, 2, 2, 1) * 2  # covariance: the identity
    np.testing.assert_allclose(zca(x)(x), x, atol=1e-4)


def test_the_last_tenth_of_the_training_images_validates(file):
    found = read_cifar10(str(file.parent))
    assert [part.images.shape for part in found] == [
        (36, 16, 16, 3),
        (4, 16, 16, 3),
        (20, 16, 16, 3),
    ]
    assert found.train.images.dtype == np.float32
    np.testing.assert_array_equal(
        np.concatenate([found.train.classes, found.valid.classes]), np.arange(40) % 10
    )


def test_whitening_is_fitted_to_the_images_that_train(file):
    before = read_cifar10(str(file)).train.images
    with np.load(file) as arrays:
        changed = dict(arrays)
    changed["x_test"] = changed["x_test"][::-1].copy() // 2
    changed["x_train"][36:] = 0  # the images that validate
    np.savez(file, **changed)
    np.testing.assert_array_equal(read_cifar10(str(file)).train.images, before)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), "or a folder with one such file"),
        (
            lambda path: path.write_bytes(b"<html>"),
            "is not an .npz file with x_train, y_train, x_test, y_test",
        ),
        (lambda path: np.savez(path, x_train=np.zeros(3)), "is not an .npz file with"),
        (
            lambda path: np.savez(
                path, **dict.fromkeys(("x_train", "y_train", "x_test", "y_test"), np.zeros(3))
            ),
            "bytes",
        ),
    ],
    ids=["missing", "html", "arrays missing", "other arrays"],
)
def test_another_file_is_refused(file, spoil, message):
    spoil(file)
    with pytest.raises(UserError, match=message):
        read_cifar10(str(file))
