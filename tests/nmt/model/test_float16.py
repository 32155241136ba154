"""Products with factors in float16, also where float16 itself would be 0 or infinite."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.affine import float16_product as product


def product_and_gradients(x, y, dz):
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = product(x, y)
    return [z, *tape.gradient(z, [x, y], dz)]


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e15])
def test_a_product_and_its_gradients_keep_the_size_of_their_factors(size, jit_compile):
    """Eleven bits of each factor and of the result are left; three roundings make about nine."""
    x, y, dz = (np.random.default_rng(i).normal(size=(2, 20, 20)).astype(np.float32) for i in range(3))
    x, dz = x * np.float32(size), dz / np.float32(size)
    found = tf.function(product_and_gradients, jit_compile=jit_compile)(*map(tf.constant, (x, y, dz)))
    expected = [x @ y, dz @ y.swapaxes(1, 2), x.swapaxes(1, 2) @ dz]
    for a, e in zip(found, expected, strict=True):
        assert a.dtype == tf.float32
        assert np.max(np.abs(a - e)) < 2**-9 * np.max(np.abs(e))


def test_zeros_and_numbers_that_are_not_finite():
    ones = tf.ones([2, 2])
    assert product(tf.zeros([2, 2]), ones).numpy().tolist() == [[0, 0], [0, 0]]
    assert not np.isfinite(product(tf.constant([[np.inf, 1], [1, np.nan]]), ones)).any()
