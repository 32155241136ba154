"""The norms that conditions build."""

import numpy as np

from experiments.translation.schedule import read_conditions
from tests.reference import rms_norm

CONDITIONS = {condition.name: condition for condition in read_conditions() if condition.build}
X = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float32)


def built(name):
    layer = CONDITIONS[name].build("norm")
    layer.build((None, X.shape[-1]))
    return layer


def test_scaled_l2norm_begins_as_rmsnorm_with_larger_gains():
    layer = built("l2norm-scaled")
    np.testing.assert_allclose(layer(X), rms_norm(X, epsilon=1e-5), rtol=1e-5)
    np.testing.assert_allclose(layer.gain, np.full(12, 12**0.5), rtol=1e-6)
    layer.gain.assign(np.ones(12))
    expected = X / np.sqrt(np.sum(X**2, -1, keepdims=True) + 12e-5)
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5)
