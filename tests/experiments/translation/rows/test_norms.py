"""The norms that rows build."""

import keras
import numpy as np
import pytest

from experiments.translation.plan import read_rows

ROWS = {row.name: row for row in read_rows() if row.build}
X = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float32)


def rms_norm(x, epsilon):
    return x / np.sqrt(np.mean(x.astype(np.float64) ** 2, -1, keepdims=True) + epsilon)


def built(name):
    layer = ROWS[name].build("norm")
    layer.build((None, X.shape[-1]))
    return layer


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3])
def test_the_epsilon_is_that_of_the_row(epsilon):
    small = 0.01 * X
    np.testing.assert_allclose(built(f"rmsnorm-epsilon-{epsilon:g}")(small), rms_norm(small, epsilon), rtol=1e-5)
    centred = small - small.mean(-1, keepdims=True)
    np.testing.assert_allclose(
        built(f"layernorm-epsilon-{epsilon:g}")(small), rms_norm(centred, epsilon), rtol=1e-4, atol=1e-5
    )


def test_scaled_l2norm_begins_as_rmsnorm_with_larger_gains():
    layer = built("l2norm-scaled")
    np.testing.assert_allclose(layer(X), rms_norm(X, 1e-5), rtol=1e-5)
    np.testing.assert_allclose(layer.gain, np.full(12, 12**0.5), rtol=1e-6)
    layer.gain.assign(np.ones(12))
    expected = X / np.sqrt(np.sum(X**2, -1, keepdims=True) + 12e-5)
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5)


def test_the_rounded_statistic_is_off_by_the_precision_of_bfloat16():
    found = keras.ops.convert_to_numpy(built("rmsnorm-rounded")(X))
    exact = rms_norm(X, 1e-5)
    difference = np.abs(found / exact - 1).max()
    assert 1e-4 < difference < 2**-6
