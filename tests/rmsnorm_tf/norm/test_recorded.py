"""Norms that a tape recorded in eager mode, and whose gradient is asked for inside a graph."""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormLSTM,
    RMSNormSimpleRNNCell,
    fold_layer_norm,
    replace_layer_norm,
    rms_norm,
    set_fused,
)
from tests.parameters import slow

ROWS = (2, 4)
SEQUENCES = (2, 2, 2)


def with_weights(layer, shape):
    """Returns the layer, built in float64 with weights that all differ."""
    layer.build(shape)
    rng = np.random.default_rng(1)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def gated():
    layer = with_weights(RMSNormalization(center=True, partial=0.5, dtype="float64"), ROWS)
    return lambda x: layer(x, gate=tf.sin(x))


def changed_by(convert):
    inputs = keras.Input((4,), dtype="float64")
    hidden = keras.layers.Dense(3, dtype="float64")(inputs)
    norm = keras.layers.LayerNormalization(dtype="float64")
    model = with_weights(keras.Model(inputs, norm(hidden)), ROWS)
    assert convert(model).entries[0].converted
    return model


FUNCTIONS = {
    "function": (ROWS, lambda: rms_norm),
    "compiled": (ROWS, lambda: functools.partial(rms_norm, fused=True)),
    "gated": (ROWS, gated),
    "groups": (ROWS, lambda: with_weights(RMSNormalization(groups=2, dtype="float64"), ROWS)),
    "an inner axis": (
        SEQUENCES,
        lambda: with_weights(RMSNormalization(1, scale_axis=2, dtype="float64"), SEQUENCES),
    ),
    "folded": (ROWS, lambda: changed_by(fold_layer_norm)),
    "replaced": (ROWS, lambda: changed_by(replace_layer_norm)),
    "several axes": (
        SEQUENCES,
        lambda: with_weights(RMSNormalization((1, 2), dtype="float64"), SEQUENCES),
    ),
    "a cell": (
        SEQUENCES,
        lambda: with_weights(
            keras.layers.RNN(RMSNormSimpleRNNCell(2, dtype="float64"), dtype="float64"), SEQUENCES
        ),
    ),
    "GRU": (SEQUENCES, lambda: with_weights(RMSNormGRU(2, dtype="float64"), SEQUENCES)),
    "LSTM": (SEQUENCES, lambda: with_weights(RMSNormLSTM(2, dtype="float64"), SEQUENCES)),
}


def recorded(function, order, x):
    """Returns a tape, and the derivative of the order below that it recorded in eager mode."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        if order == 1:
            y = function(x)
        else:
            inner, lower = recorded(function, order - 1, x)
            y = inner.gradient(lower, x)
    return tape, y


def differences(function, x, step=1e-5):
    """Returns the Jacobian matrix of a function, by central differences."""
    columns = []
    for entry in np.eye(x.size):
        moved = step * entry.reshape(x.shape)
        after = function(tf.constant(x + moved)).numpy()
        before = function(tf.constant(x - moved)).numpy()
        columns.append((after - before).ravel() / (2 * step))
    return np.stack(columns, 1)


def in_a_graph(tape, y, x, dy):
    return tf.function(lambda: tape.gradient(y, x, dy))()


def vectorized(tape, y, x, dy):
    return tf.vectorized_map(lambda dy: tape.gradient(y, x, dy), tf.stack([dy, dy]))[1]


def in_a_loop(tape, y, x, dy):
    def step(i, total):
        return i + 1, total + tape.gradient(y, x, dy)

    loop = tf.function(lambda: tf.while_loop(lambda i, _: i < 2, step, (0, tf.zeros_like(x))))
    return loop()[1] / 2


def compiled(tape, y, x, dy):
    return tf.function(lambda: tape.gradient(y, x, dy), jit_compile=True)()


WAYS = [tf.GradientTape.gradient, in_a_graph, vectorized, in_a_loop, compiled]
CASES = [*itertools.product(FUNCTIONS, (1, 2, 3))]
QUICK = [("function", 1), ("gated", 1), ("compiled", 1), ("function", 2)]


@pytest.mark.parametrize(
    ("name", "order"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case not in QUICK)) for case in CASES],
)
def test_gradients_asked_for_in_graphs(name, order):
    shape, make = FUNCTIONS[name]
    function = make()
    x = tf.constant(np.random.default_rng(0).normal(size=shape))
    tape, y = recorded(function, order, x)
    expected = differences(lambda x: recorded(function, order, x)[1], x.numpy())
    allowed = {"rtol": 1e-6, "atol": 1e-6 * max(1, np.abs(expected).max())}
    for with_pfor in (True, False):
        actual = tape.jacobian(y, x, experimental_use_pfor=with_pfor)
        np.testing.assert_allclose(np.reshape(actual, expected.shape), expected, **allowed)
    dy = tf.cos(y)
    for way in WAYS:
        actual = way(tape, y, x, dy)
        np.testing.assert_allclose(np.ravel(actual), np.ravel(dy) @ expected, **allowed)


@pytest.mark.parametrize("fused", [False, *slow(True)])
def test_where_the_argument_is_overridden(fused):
    set_fused(fused)
    try:
        x = tf.constant(np.random.default_rng(0).normal(size=(2, 3)))
        tape, y = recorded(rms_norm, 1, x)
        blocks = tape.batch_jacobian(y, x)
    finally:
        set_fused(None)
    expected = differences(rms_norm, x.numpy()).reshape(2, 3, 2, 3)
    for i in range(2):
        np.testing.assert_allclose(blocks[i], expected[i, :, i], rtol=1e-6, atol=1e-6)


def test_a_second_derivative_whose_tape_begins_in_the_graph():
    x = tf.constant(np.random.default_rng(0).normal(size=ROWS))
    tape, y = recorded(rms_norm, 1, x)

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            dx = tape.gradient(y, x, tf.cos(x))
        return outer.gradient(dx, x)

    np.testing.assert_allclose(tf.function(second)(), second(), rtol=1e-9, atol=1e-9)
