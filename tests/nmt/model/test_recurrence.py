"""Recurrences against loops in Python, which TensorFlow differentiates by itself."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from nmt.model.forward_pass import affine
from nmt.model.recurrence import Matrix, scan
from tests.nmt.model.blocks import normal


@pytest.mark.parametrize("reverse", [False, True])
def test_runs_over_time(reverse):
    x = normal(2, 5, 3)
    start = normal(2, 3)
    found = scan(lambda state, x, *_: 0.5 * state + x, x, start, reverse=reverse)
    state = start
    expected = np.zeros_like(x)
    for t in reversed(range(5)) if reverse else range(5):
        state = expected[:, t] = 0.5 * state + x[:, t]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


class Cell:
    """Uses all that a step may: two states, two inputs, weights inside and outside of products,
    constants.
    """

    def __init__(self):
        self.weights = [keras.Variable(normal(*shape)) for shape in ((3, 3), (3,), (4, 3), (3,))]
        self.tensors = [
            tf.constant(normal(*shape))
            for shape in ((2, 5, 3), (2, 5, 1), (2, 3), (2, 4), (2, 3, 4), (2, 3))
        ]

    def matrices(self):
        kernel, bias, from_seen, _ = self.weights
        return [Matrix(kernel, bias), Matrix(from_seen), Matrix(self.tensors[4])]

    def step(self, state, inputs, constants, affine):
        (h, seen) = state
        (x, gate) = inputs
        (shift,) = constants
        kernel, bias, from_seen, scale = self.weights
        h = (
            tf.tanh(x + affine(h, kernel, bias) * scale.value + affine(seen, from_seen)) * gate
            + shift
        )
        return h, affine(tf.nn.softmax(h), self.tensors[4]) + 0.1 * seen

    def loss(self, run):
        """Returns a number that depends on every state, and its gradients by weights and
        tensors."""
        with tf.GradientTape() as tape:
            tape.watch(self.tensors)
            x, gate, h, seen, _, shift = self.tensors
            states = run(self.step, (x, gate), (h, seen), self.matrices(), [shift])
            loss = sum(tf.reduce_sum(tf.sin(state) * (i + 1)) for i, state in enumerate(states))
        return [
            loss,
            *tape.gradient(loss, [*self.tensors, *(weight.value for weight in self.weights)]),
        ]


def loop(step, sequences, state, _, constants, reverse):
    """The same in Python."""
    times = range(5)[::-1] if reverse else range(5)
    states = {}
    for t in times:
        state = states[t] = step(state, tuple(x[:, t] for x in sequences), constants, affine)
    in_order = map(states.get, range(5))
    return [tf.stack(each, 1) for each in zip(*in_order, strict=True)]


@pytest.mark.parametrize("reverse", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_gradients_equal_those_of_an_unrolled_loop(jit_compile, reverse):
    cell = Cell()
    found = tf.function(
        lambda: cell.loss(lambda *given: scan(*given, reverse=reverse)), jit_compile=jit_compile
    )()
    expected = cell.loss(lambda *given: loop(*given, reverse))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_unknown_time():
    """One trace serves sequences of every length."""
    cell = Cell()
    x, gate, h, seen, _, shift = cell.tensors

    @tf.function(input_signature=[tf.TensorSpec([2, None, 3]), tf.TensorSpec([2, None, 1])])
    def run(x, gate):
        return scan(cell.step, (x, gate), (h, seen), cell.matrices(), [shift])

    whole = run(x, gate)
    for a, b in zip(run(x[:, :2], gate[:, :2]), whole, strict=True):
        np.testing.assert_allclose(a, b[:, :2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_factors(dtype):
    """Eight or eleven bits of each factor are left; weights' gradients are float32."""
    cell = Cell()
    found = cell.loss(functools.partial(scan, dtype=dtype))
    expected = cell.loss(lambda *given: loop(*given, False))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == tf.float32
        error = np.linalg.norm(a - b) / np.linalg.norm(b)
        assert error < {"bfloat16": 0.03, "float16": 0.004}[dtype]
    assert any((a.numpy() != b.numpy()).any() for a, b in zip(found, expected, strict=True))


def test_products_must_come_as_declared():
    x = normal(2, 5, 3)
    start = normal(2, 3)
    one, other = (keras.Variable(normal(3, 3)) for _ in range(2))

    def step(state, x, _, affine):
        return affine(state, one) + x

    for matrices in ([], [Matrix(other)], [Matrix(one, other)]):
        with pytest.raises(ValueError, match="call 0 of the step"):
            scan(step, x, start, matrices)
