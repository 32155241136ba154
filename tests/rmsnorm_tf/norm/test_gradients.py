"""Gradients: against differences, of extreme inputs, and of higher order."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import rms_norm
from tests import reference
from tests.cases import TOLERANCE, assert_close
from tests.parameters import slow

PATHS = [False, True]
VARIANTS = [
    {},
    {"partial": 0.3},
    {"axis": 1},
    {"axis": 1, "partial": 0.5},
    {"axis": (1, -1)},
    {"axis": 1, "scale_axis": 2},
]


def weights_for(x, axis=-1, scale_axis=None, **_):
    axes = sorted(np.atleast_1d(axis if scale_axis is None else scale_axis) % x.ndim)
    rng = np.random.default_rng(1)
    return list(rng.normal(size=[2, *(x.shape[a] for a in axes)]))


def gradients_of(function, sources, dy):
    sources = [tf.convert_to_tensor(s) for s in sources]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    return tape.gradient(y, sources, dy)


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_first_derivative(variant, fused):
    x, dy = np.random.default_rng(0).normal(size=(2, 2, 4, 8))
    sources = [x, *weights_for(x, **variant)]
    actual = gradients_of(lambda *s: rms_norm(*s, **variant, fused=fused), sources, dy)
    equation = {k: v for k, v in variant.items() if k != "partial"}
    equation["k"] = {0.3: 3, 0.5: 2}.get(variant.get("partial"))
    for i, gradient in enumerate(actual):

        def loss(source, i=i):
            return np.sum(
                dy * reference.rms_norm(*sources[:i], source, *sources[i + 1 :], **equation)
            )

        np.testing.assert_allclose(
            gradient, reference.numerical_gradient(loss, sources[i]), rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("graph", [True, *slow(False)])
@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("variant", [*VARIANTS[:2], *slow(*VARIANTS[2:])], ids=str)
def test_second_derivative(variant, fused, graph):
    x, dy, upstream = np.random.default_rng(0).normal(size=(3, 2, 2, 4))
    scale, _ = weights_for(x, **variant)

    def first(x, scale, dy):
        return gradients_of(lambda x, s: rms_norm(x, s, **variant, fused=fused), [x, scale], dy)[0]

    first = tf.function(first) if graph else first
    sources = [x, scale, dy]
    actual = gradients_of(first, sources, upstream)
    for i, gradient in enumerate(actual):

        def loss(source, i=i):
            return np.sum(
                upstream * first(*map(tf.constant, [*sources[:i], source, *sources[i + 1 :]]))
            )

        np.testing.assert_allclose(
            gradient, reference.numerical_gradient(loss, sources[i]), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("fused", [True, *slow(False)])
def test_jacobian_and_a_persistent_tape_around_a_graph(fused):
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 8)))

    @tf.function
    def first(x):
        return gradients_of(lambda x: tf.sin(rms_norm(x, fused=fused)), [x], tf.ones_like(x))[0]

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = first(x)
    jacobian = tape.jacobian(y, x)
    np.testing.assert_allclose(jacobian, tf.transpose(jacobian, (2, 3, 0, 1)), atol=1e-13)
    np.testing.assert_allclose(tf.reduce_sum(jacobian, (0, 1)), tape.gradient(y, x), atol=1e-12)


def forwards(function, tangent):
    """Returns the derivative of a function along a tangent, by forward mode."""

    def derivative(x):
        with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
            y = function(x)
        return accumulator.jvp(y)

    return derivative


def backwards(function, dy):
    """Returns the function that gives the gradient of `function`, by reverse mode."""
    return lambda x: gradients_of(function, [x], dy)[0]


MODES = {
    "eager": lambda f: f,
    "graph": tf.function,
    "XLA": lambda f: tf.function(f, jit_compile=True),
}


@pytest.mark.parametrize("fused", [True, *slow(False)])
@pytest.mark.parametrize("size", [1.0, *slow(1e160)])  # of which squares overflow
def test_forward_mode(size, fused):
    x, tangent, dy = tf.unstack(np.random.default_rng(0).normal(size=(3, 2, 8)))
    scale = tf.cos(x[0])

    def normalize(x, fused=fused):
        return rms_norm(x, scale, partial=0.5, epsilon=1e-12, fused=fused)

    def agrees(function, expected, power):
        """Compares with a size of 1; the size to this power is a factor of the function."""
        actual = function(x * size) / size**power
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)

    # Derivatives by reverse mode, which are compared with differences above.
    plain = functools.partial(normalize, fused=False)
    first = forwards(normalize, tangent * size)
    second = backwards(backwards(plain, dy), tangent)(x)
    agrees(
        lambda x: tf.reduce_sum(dy * first(x)), tf.reduce_sum(backwards(plain, dy)(x) * tangent), 0
    )
    agrees(forwards(backwards(normalize, dy), tangent * size), second, -1)
    agrees(backwards(first, dy), second, -1)


@pytest.mark.parametrize("first", ["XLA", *slow("graph")])
@pytest.mark.parametrize("then", ["eager", *slow("graph", "XLA")])
def test_derivatives_do_not_depend_on_where_a_shape_came_first(first, then):
    """A third derivative of a shape of its own."""
    size = 8 + 3 * list(MODES).index(first) + list(MODES).index(then)
    x, dy, tangent = tf.unstack(np.random.default_rng(0).normal(size=(3, 2, size)))

    def third(x, fused):
        second = backwards(backwards(lambda x: rms_norm(x, partial=0.5, fused=fused), dy), tangent)
        return backwards(second, dy)(x)

    MODES[first](lambda x: rms_norm(x, partial=0.5, fused=True))(x)
    np.testing.assert_allclose(
        MODES[then](lambda x: third(x, True))(x), third(x, False), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("order", [3, *slow(4)])
@pytest.mark.parametrize("size", [1e-2, 1.0, 1e2])
def test_derivatives_of_high_order_in_float32(size, order):
    """Powers of u must not overflow."""
    x, *tangents = np.random.default_rng(0).normal(size=(1 + order, 2, 8))

    def derivative(dtype):
        function = functools.partial(rms_norm, fused=False)
        for tangent in tangents:
            function = backwards(function, tf.constant(tangent, dtype))
        return function(tf.constant(size * x, dtype))

    assert_close(derivative(tf.float32), derivative(tf.float64), factor=100)


def test_a_tape_around_a_forward_accumulator_when_a_shape_recurs():
    x, dy, tangent = tf.unstack(np.random.default_rng(0).normal(size=(3, 2, 7)))
    derivatives = [backwards(forwards(rms_norm, tangent), dy)(x) for _ in range(5)]
    expected = backwards(backwards(rms_norm, dy), tangent)(x)
    for actual in derivatives:
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, *slow(False)])
def test_a_forward_accumulator_around_another(fused):
    x, dy, tangent = tf.unstack(np.random.default_rng(0).normal(size=(3, 2, 6)))
    normalize = functools.partial(rms_norm, fused=fused)
    actual = tf.reduce_sum(dy * forwards(forwards(normalize, tangent), tangent)(x))
    expected = tf.reduce_sum(tangent * backwards(backwards(normalize, dy), tangent)(x))
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_zero_rows(dtype, fused):
    dy = tf.constant([[1.0, -2.0, 0.5, 4.0]], dtype)
    dx, dscale = gradients_of(
        lambda x, s: rms_norm(x, s, epsilon=1e-4, fused=fused),
        [tf.zeros_like(dy), tf.constant([1.0, 2, 3, 4])],
        dy,
    )
    assert_close(tf.cast(dx, tf.float64), [[100, -400, 150, 1600]], dtype)
    np.testing.assert_array_equal(dscale, np.zeros(4))


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("size", [1e19, 1e25, 1e30])
def test_squares_that_overflow(size, fused):
    rng = np.random.default_rng(0)
    x, dy = rng.uniform(0.5, 1, size=(2, 3, 8)).astype(np.float32)
    scale = rng.normal(size=8).astype(np.float32)

    def gradients(factor):
        normalize = lambda x, s: rms_norm(x * factor, s, fused=fused)  # noqa: E731
        return gradients_of(normalize, [x, scale], dy)

    # With respect to x, the chain through x * factor makes the gradient the same for every factor
    # that hides epsilon.
    for huge, ordinary in zip(gradients(size), gradients(1e4), strict=True):
        assert_close(huge, ordinary, factor=20)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("variant", [{}, {"partial": 0.3}], ids=str)
def test_fused_gradient_equals_the_composed_one(variant, dtype):
    rng = np.random.default_rng(0)
    x, dy = tf.cast(rng.normal(size=(2, 40, 64)), dtype)
    weights = [tf.cast(w, tf.float32) for w in weights_for(x.numpy())]
    both = [
        gradients_of(lambda *s, f=f: rms_norm(*s, **variant, fused=f), [x, *weights], dy)
        for f in PATHS
    ]
    for i, (composed, compiled) in enumerate(zip(*both, strict=True)):
        assert composed.dtype == compiled.dtype
        assert_close(
            tf.cast(compiled, tf.float64),
            tf.cast(composed, tf.float64),
            dtype if i == 0 else "float32",
            2,
        )


@pytest.mark.slow
@pytest.mark.parametrize("fused", PATHS)
def test_second_derivative_in_a_branch_of_a_graph(fused):
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 8)))

    def first(x, normalize):
        return gradients_of(lambda x: tf.sin(normalize(x)), [x], tf.ones_like(x))[0]

    def second(normalize):
        return gradients_of(lambda x: first(x, normalize), [x], tf.cos(x))[0]

    in_a_branch = tf.function(
        lambda flag: second(
            lambda x: tf.cond(flag, lambda: rms_norm(x, fused=fused), lambda: tf.zeros_like(x))
        )
    )
    expected = second(lambda x: rms_norm(x, fused=False))
    np.testing.assert_allclose(in_a_branch(tf.constant(True)), expected, rtol=1e-10, atol=1e-12)
