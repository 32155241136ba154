"""Costs of words, and a sum computed in parts: against NumPy and TensorFlow's own gradient."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.costs import log_normalizers, sum_in_parts, word_costs


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_word_costs_its_cross_entropy(smoothing):
    logits = np.random.default_rng(0).normal(scale=5, size=[2, 3, 7])
    words = np.array([[0, 6, 2], [3, 3, 1]])
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = (1 - smoothing) * np.eye(7)[words] + smoothing / 7
    found = word_costs(tf.constant(logits), words, smoothing)
    np.testing.assert_allclose(found, -(wanted * log_probabilities).sum(-1), rtol=1e-12)


def test_large_logits_do_not_overflow():
    np.testing.assert_allclose(
        word_costs(tf.constant([[1000.0, 0.0], [-1000.0, 0.0]]), [1, 1]), [1000.0, 0.0]
    )


@pytest.mark.parametrize(
    "shifts",
    [[0.0], [45.0, -45.0], [-85.0], [-90.0], [0.0, 90.0], [-1000.0, 0.0, 1000.0], []],
    ids=str,
)
def test_normalizers_of_logits_of_any_size(shifts):
    logits = np.random.default_rng(1).normal(scale=3, size=[len(shifts), 50])
    expected = np.log(np.exp(logits).sum(-1)) + shifts
    found = log_normalizers(tf.constant(logits + np.array(shifts)[:, np.newaxis], tf.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


def weighted_squares(x, factors, matrix, shift):
    return tf.reduce_sum(factors * tf.reduce_sum(tf.square(tf.matmul(x, matrix) + shift), 1))


@pytest.mark.parametrize(
    "rows", [1, 8, 21], ids=["fewer rows than parts", "one each", "parts not full"]
)
@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "xla"])
def test_a_sum_in_parts_has_the_value_and_gradient_of_the_whole(rows, compiled):
    rng = np.random.default_rng(1)
    x, matrix, shift = (tf.constant(rng.normal(size=size)) for size in ([rows, 3], [3, 2], [2]))
    factors = tf.constant(rng.normal(size=[rows]))

    def value_and_gradient(function):
        with tf.GradientTape() as tape:
            tape.watch([x, matrix, shift])
            value = 3.0 * function()
        return value, *tape.gradient(value, [x, matrix, shift])

    in_parts = tf.function(
        lambda: value_and_gradient(
            lambda: sum_in_parts(weighted_squares, (x, factors), (matrix, shift))
        ),
        jit_compile=compiled,
    )
    whole = value_and_gradient(lambda: weighted_squares(x, factors, matrix, shift))
    for found, expected in zip(in_parts(), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_function_gets_one_part_at_a_time():
    seen = []

    def function(x, weight):
        seen.append(x.shape[0])
        return tf.reduce_sum(x * weight)

    sum_in_parts(function, (tf.ones([40, 1]),), (tf.constant(2.0),))
    assert seen == [5] * 8
