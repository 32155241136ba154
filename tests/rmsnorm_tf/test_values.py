"""Values against the NumPy equation."""

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormalization, rms_norm
from tests import reference


@pytest.mark.parametrize("axis", [-1, 1, (1, 2), (-1, 1)])
def test_value_and_gradient(axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 4))
    axes = sorted(np.atleast_1d(axis) % 3)
    scale = rng.normal(size=[x.shape[a] for a in axes])
    weights = rng.normal(size=x.shape)
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = rms_norm(t, scale, axis=axis)
        loss = tf.reduce_sum(y * weights)
    np.testing.assert_allclose(y, reference.rms_norm(x, scale, axis=axis), rtol=1e-12)
    expected = reference.numerical_gradient(lambda v: np.sum(weights * reference.rms_norm(v, scale, axis=axis)), x)
    np.testing.assert_allclose(tape.gradient(loss, t), expected, rtol=1e-6, atol=1e-8)


def test_partial_looks_at_the_first_entries_only():
    x = np.random.default_rng(0).normal(size=(4, 30)).astype("float32")
    y = RMSNormalization(epsilon=1e-5, partial=0.1)(x)
    np.testing.assert_allclose(y, reference.rms_norm(x, k=3, epsilon=1e-5), rtol=1e-6)
