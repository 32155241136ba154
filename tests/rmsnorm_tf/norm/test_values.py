"""Values: against the equation in NumPy, and through its algebra."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import rms_norm
from tests import reference
from tests.cases import TOLERANCE, assert_close

AXES = [-1, 0, 1, np.int64(2), (1, 2), (-1, 1), (2, 0, 1)]
PATHS = [False, True]


def draw(shape, dtype, seed=0):
    """Returns random numbers as a tensor, and exactly these numbers as float64."""
    t = tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)
    return t, tf.cast(t, tf.float64).numpy()


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_equation(dtype, axis, fused):
    x, x64 = draw((3, 4, 16), dtype)
    shape = [x.shape[a] for a in sorted(np.atleast_1d(axis) % 3)]
    scale, scale64 = draw(shape, "float64" if dtype == "float64" else "float32", seed=1)
    offset, offset64 = draw(shape, scale.dtype, seed=2)
    y = rms_norm(x, scale, offset, axis=axis, fused=fused)
    assert y.dtype == x.dtype
    assert_close(y, reference.rms_norm(x64, scale64, offset64, axis), dtype)


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_partial(axis, fused):
    x, x64 = draw((16, 16, 16), "float32")
    y = rms_norm(x, axis=axis, partial=0.3, fused=fused)
    assert_close(y, reference.rms_norm(x64, axis=axis, k=5))


@pytest.mark.parametrize(
    ("size", "partial", "k"),
    [
        (30, 0.1, 3),
        (30, np.float32(0.1), 3),
        (10, 0.1 + 0.2, 3),
        (3, 1 / 3, 1),
        (3, 2 / 3, 2),
        (1024, 0.0625, 64),
        (1000, 0.0625, 63),
        (10, 0.0625, 1),
        (1, 1e-9, 1),
        (7, 1.0, 7),
    ],
)
def test_only_the_first_k_entries_enter_a_partial_statistic(size, partial, k):
    x = np.arange(1, size + 1, dtype=np.float32)
    assert_close(rms_norm(x, partial=partial), reference.rms_norm(x, k=k))


def test_scale_axis_apart_from_the_axis_of_the_statistic():
    x, x64 = draw((2, 4, 5, 3), "float32")
    scale, scale64 = draw((3,), "float32", seed=1)
    y = rms_norm(x, scale, axis=(1, 2), scale_axis=-1)
    assert_close(y, reference.rms_norm(x64, scale64, axis=(1, 2), scale_axis=3))


def test_output_has_unit_rms_and_is_invariant_to_the_input_scale():
    x, _ = draw((5, 64), "float64")
    y = rms_norm(x, epsilon=1e-30)
    np.testing.assert_allclose(np.mean(y.numpy() ** 2, -1), 1, rtol=1e-14)
    np.testing.assert_allclose(rms_norm(-1e3 * x, epsilon=1e-30), -y, rtol=1e-13)


def test_equals_layer_norm_on_zero_mean_input():
    x, _ = draw((5, 64), "float64")
    x -= tf.reduce_mean(x, -1, keepdims=True)
    assert_close(rms_norm(x), reference.layer_norm(x), "float64")


def test_partial_of_one_is_the_full_norm():
    x, _ = draw((5, 64), "float32")
    np.testing.assert_array_equal(rms_norm(x, partial=1.0), rms_norm(x))


def test_epsilon_is_inside_the_root():
    assert_close(rms_norm([[3.0, 3.0]], epsilon=16.0), [[0.6, 0.6]])


def compiled_large(x, **arguments):
    """Normalizes x among so many copies that a sum of squares is checked for overflow instead of taken in float64."""
    copies = 1 + 2**18 // (x.shape[0] * x.shape[1])
    return rms_norm(tf.tile(x, [copies, 1]), fused=True, **arguments)[: x.shape[0]]


# Each way to keep a sum of squares from overflowing.
every_path = pytest.mark.parametrize(
    "normalize",
    [functools.partial(rms_norm, fused=False), functools.partial(rms_norm, fused=True), compiled_large],
    ids=["plain", "compiled, in float64", "compiled, checked"],
)


@every_path
@pytest.mark.parametrize(("dtype", "size"), [("float32", 1.5e19), ("float64", 1e154)])
def test_epsilon_is_inside_the_root_also_where_squares_overflow(dtype, size, normalize):
    y = normalize(tf.constant([[size, size]], dtype), epsilon=size**2)
    assert_close(y, np.sqrt([[0.5, 0.5]]), dtype)


@every_path
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_squares_that_overflow(dtype, normalize):
    top = float(tf.as_dtype(dtype).max)
    rows = [[top, top / 2, -top / 3, 1], [1, 2, 3, 4], [0, 0, 0, 0], [top**0.5, 1, 0, 1], [top, 0, 0, 0]]
    x = tf.constant(rows, dtype)
    x64 = tf.cast(x, tf.float64).numpy()
    # The reference would overflow in float64 as well, so divide its input, and epsilon with it.
    down = np.max(np.abs(x64), -1, keepdims=True) + 1
    expected = [reference.rms_norm(r / d, epsilon=1e-6 / d / d) for r, d in zip(x64, down[:, 0], strict=True)]
    y = normalize(x)
    for actual, row in zip(tf.cast(y, tf.float64), expected, strict=True):
        assert_close(actual, row, dtype)


@every_path
def test_a_partial_statistic_that_overflows(normalize):
    y = normalize(tf.constant([[1e30, 1e30, 2e30, 1.0]]), partial=0.5)
    assert_close(y, [[1, 1, 2, 1e-30]])


def test_a_row_that_is_not_finite_does_not_affect_others():
    y = rms_norm(tf.constant([[np.nan, 1.0], [3.0, 4.0], [np.inf, 1.0]]), epsilon=1e-12)
    assert_close(y[1], np.array([3, 4]) / np.sqrt(12.5))
    assert np.isnan(y[0]).all()
    np.testing.assert_array_equal(y[2], [np.nan, 0])


@pytest.mark.parametrize("largest", [1.0, 1e25])
@pytest.mark.parametrize("fused", PATHS)
def test_vectorized_map(fused, largest):
    x, _ = draw((3, 512, 1024), "float32")
    x = tf.tensor_scatter_nd_update(x, [[1, 5, 7]], [largest])
    y = tf.vectorized_map(lambda t: rms_norm(t, fused=fused), x)
    assert_close(y, rms_norm(x, fused=False), factor=5)


@pytest.mark.parametrize("fused", PATHS)
def test_no_rows(fused):
    x = tf.zeros((0, 7, 8))
    scale = tf.ones(8)
    with tf.GradientTape() as tape:
        tape.watch([x, scale])
        y = rms_norm(x, scale, fused=fused)
    assert y.shape == (0, 7, 8)
    dx, dscale = tape.gradient(y, [x, scale])
    assert dx.shape == (0, 7, 8)
    np.testing.assert_array_equal(dscale, np.zeros(8))


def test_a_single_row_without_batch():
    x, x64 = draw((16,), "float32")
    scale, scale64 = draw((16,), "float32", seed=1)
    with tf.GradientTape() as tape:
        tape.watch(scale)
        y = rms_norm(x, scale)
    assert_close(y, reference.rms_norm(x64, scale64))
    assert_close(tape.gradient(y, scale), reference.rms_norm(x64))


@pytest.mark.parametrize(
    "ragged",
    [
        tf.RaggedTensor.from_row_lengths(np.arange(12.0).reshape(6, 2), [3, 0, 2, 1]),
        tf.RaggedTensor.from_uniform_row_length(np.arange(12.0), 2),
    ],
    ids=["uniform inside", "uniform partition"],
)
def test_ragged(ragged):
    y = rms_norm(ragged, tf.constant([2.0, 3.0]), axis=ragged.shape.rank - 1)
    expected = reference.rms_norm(np.arange(12.0).reshape(6, 2), [2, 3])
    assert y.shape.as_list() == ragged.shape.as_list()
    assert_close(tf.reshape(y.flat_values, (6, 2)), expected, "float64")
