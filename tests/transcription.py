"""Recurrent cells with drawn weights, and the equations of tests/reference.py for them."""

import functools
import math

import keras
import numpy as np

from rmsnorm_tf import RMSNormLSTMCell, RMSNormSimpleRNNCell
from tests import reference
from tests.backends import WIDEST, gradients_of_layer, to_array

UNITS = 4
INPUTS = 3
TIME = 5
BATCH = 2


def draw(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def with_drawn_weights(layer):
    """Builds a layer or cell and gives it weights that all differ."""
    is_layer = isinstance(layer, keras.layers.RNN)
    layer.build((None, TIME, INPUTS) if is_layer else (None, INPUTS))
    layer.set_weights([draw(*w.shape, seed=i) for i, w in enumerate(layer.weights)])
    return layer


def outputs(cell, x, weights=None):
    """Returns the outputs `[batch, time, units]` of a built cell whose first states are zeros.

    `weights` take the place of the cell's own, in their order.
    """
    values = [to_array(w) for w in cell.weights] if weights is None else weights
    weights = dict(
        zip((w.path.removeprefix(cell.path + "/") for w in cell.weights), values, strict=True)
    )
    norm = functools.partial(_norm, cell, weights)
    kernel = weights["kernel"]
    recurrent_kernel = weights["recurrent_kernel"]
    bias = weights.get("bias", 0.0)
    zeros = np.zeros((len(x), cell.units))

    if isinstance(cell, RMSNormSimpleRNNCell):
        step = functools.partial(
            reference.simple_rnn_step, w=kernel, u=recurrent_kernel, norm=norm("norm", bias)
        )
        return reference.over_time(step, x, zeros)[0]

    if isinstance(cell, RMSNormLSTMCell):
        step = functools.partial(
            reference.lstm_step,
            w=kernel,
            u=recurrent_kernel,
            b=0.0,
            norms=(norm("state_norm"), norm("input_norm", bias), norm("carry_norm")),
            normalize_carry=cell.normalize_carry,
        )
        return reference.over_time(step, x, zeros, zeros)[0]

    def gates_and_proposal(block):
        return np.split(block, [2 * cell.units], axis=-1)

    w_gates, w = gates_and_proposal(kernel)
    u_gates, u = gates_and_proposal(recurrent_kernel)
    of_input, of_state = np.broadcast_to(bias, (2, 3 * cell.units)) * [
        [1],
        [1 if cell.reset_after else 0],
    ]
    (b_gates, b) = gates_and_proposal(of_input)
    (c_gates, c) = gates_and_proposal(of_state)
    step = functools.partial(
        reference.gru_step,
        w_gates=w_gates,
        u_gates=u_gates,
        w=w,
        u=u,
        norms=(
            norm("state_gates_norm", c_gates),
            norm("input_gates_norm", b_gates),
            norm("input_proposal_norm", b),
            norm("state_proposal_norm", c),
        ),
        reset_after=cell.reset_after,
    )
    return reference.over_time(step, x, zeros)[0]


def assert_gradients(layer):
    """Compares gradients of a layer that returns sequences with differences of the equations."""
    x = draw(1, 3, INPUTS, seed=9)
    dy = draw(1, 3, UNITS, seed=10)
    actual = gradients_of_layer(layer, x, dy)
    sources = [x, *map(to_array, layer.weights)]
    for i, gradient in enumerate(actual):

        def loss(source, i=i):
            given = [*sources[:i], source, *sources[i + 1 :]]
            return np.sum(dy * outputs(layer.cell, given[0], given[1:]))

        expected = reference.numerical_gradient(loss, sources[i])
        tolerance = {"float64": 1e-7, "float32": 1e-5}[WIDEST]
        np.testing.assert_allclose(
            to_array(gradient), expected, rtol=0, atol=tolerance * np.max(np.abs(expected))
        )


def _norm(cell, weights, name, bias=0.0):
    """Returns the norm `name` as a function, the bias included."""
    own = {
        path.split("/")[1]: value for path, value in weights.items() if path.startswith(name + "/")
    }
    inside, outside = (bias, 0.0) if cell.normalize_bias else (0.0, bias)

    def apply(a):
        a = a + inside
        if cell.normalization == "layer":
            a = reference.layer_norm(a, own["gamma"], own.get("beta", 0.0), cell.epsilon)
        elif cell.normalization == "rms":
            k = None if cell.partial is None else math.ceil(a.shape[-1] * cell.partial)
            a = reference.rms_norm(a, own["scale"], own.get("offset"), k=k, epsilon=cell.epsilon)
        return a + outside

    return apply
