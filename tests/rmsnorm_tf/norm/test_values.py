"""Values: against the equation in NumPy, and through its algebra."""

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
@pytest.mark.parametrize("axis", [0, 1, 2, (1,), [-2]])
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
        (100_003, 50_004 / 100_003, 50_004),
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


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize(("dtype", "size"), [("float32", 1.5e19), ("float64", 1e154)])
def test_epsilon_is_inside_the_root_also_where_squares_overflow(dtype, size, fused):
    y = rms_norm(tf.constant([[size, size]], dtype), epsilon=size**2, fused=fused)
    assert_close(y, np.sqrt([[0.5, 0.5]]), dtype)


@pytest.mark.parametrize("fused", PATHS)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3])
@pytest.mark.parametrize(("dtype", "size"), [("float32", 5e30), ("float64", 1e155), ("bfloat16", 5e30)])
def test_squares_that_overflow(dtype, size, epsilon, fused):
    rows = [[1, 0.5, -0.25, 1e-20], [1e-20, 2e-20, 3e-20, 4e-20], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]
    x = tf.constant(np.multiply(rows, size), dtype)
    x64 = tf.cast(x, tf.float64).numpy()
    # The reference would overflow in float64 as well, so divide its input, and epsilon with it.
    expected = reference.rms_norm(x64 / size, epsilon=epsilon / size / size)
    for actual, row in zip(tf.cast(rms_norm(x, epsilon=epsilon, fused=fused), tf.float64), expected, strict=True):
        assert_close(actual, row, dtype)


def test_large_rows_of_an_unknown_batch():
    """The optimizer of graphs reorders products, and a small scale must not meet u first."""

    @tf.function(input_signature=[tf.TensorSpec((None, 2)), tf.TensorSpec(2)])
    def normalize(x, scale):
        return rms_norm(x, scale)

    assert_close(normalize(tf.fill((3, 2), 5e30), tf.fill(2, 1e-3)), np.full((3, 2), 1e-3))


@pytest.mark.parametrize("fused", PATHS)
def test_a_partial_statistic_that_overflows(fused):
    y = rms_norm(tf.constant([[1e30, 1e30, 2e30, 1.0]]), partial=0.5, fused=fused)
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
    last = ragged.shape.rank - 1
    expected = reference.rms_norm(np.arange(12.0).reshape(6, 2), [2, 3])
    for axis in (-1, last, (-1,), (last,)):
        y = rms_norm(ragged, tf.constant([2.0, 3.0]), axis=axis)
        assert y.shape.as_list() == ragged.shape.as_list()
        assert_close(tf.reshape(y.flat_values, (6, 2)), expected, "float64")
