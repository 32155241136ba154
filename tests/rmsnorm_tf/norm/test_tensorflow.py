"""What TensorFlow alone has: large rows, unknown ranks and sizes, vectorized maps."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormalization, rms_norm
from tests import reference
from tests.cases import assert_close


def test_large_rows_of_an_unknown_batch():
    """The optimizer of graphs reorders products, and a small scale must not meet u first."""

    @tf.function(input_signature=[tf.TensorSpec((None, 2)), tf.TensorSpec(2)])
    def normalize(x, scale):
        return rms_norm(x, scale)

    assert_close(normalize(tf.fill((3, 2), 5e30), tf.fill(2, 1e-3)), np.full((3, 2), 1e-3))


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 1)])
@pytest.mark.parametrize("fused", [False, True])
def test_single_entries_have_the_range_of_rows(shape, fused):
    compiled = tf.function(rms_norm, jit_compile=True, autograph=False)
    for y in (
        rms_norm(tf.fill(shape, 1e20), fused=fused),
        compiled(tf.fill(shape, -1e30), fused=fused),
    ):
        assert_close(tf.abs(y), np.ones(shape))


@pytest.mark.parametrize("largest", [1.0, 1e25])
@pytest.mark.parametrize("fused", [False, True])
def test_vectorized_map(fused, largest):
    x = tf.constant(np.random.default_rng(0).normal(size=(3, 512, 1024)), tf.float32)
    x = tf.tensor_scatter_nd_update(x, [[1, 5, 7]], [largest])
    y = tf.vectorized_map(lambda t: rms_norm(t, fused=fused), x)
    assert_close(y, rms_norm(x, fused=False), factor=5)


def test_rows_of_large_entries_under_check_numerics():
    tf.debugging.enable_check_numerics()
    try:
        y = rms_norm(tf.constant([[3e25, 4e25]]), fused=False)
    finally:
        tf.debugging.disable_check_numerics()
    assert_close(y, [[0.6 * np.sqrt(2), 0.8 * np.sqrt(2)]])


def test_unknown_rank():
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def normalize(x):
        return rms_norm(x)

    with pytest.raises(ValueError, match="x must have a known rank"):
        normalize(tf.ones((2, 3)))


def test_ragged_rows():
    ragged = tf.RaggedTensor.from_row_lengths(
        np.arange(12.0, dtype="float32").reshape(6, 2), [3, 0, 3]
    )
    y = tf.ragged.map_flat_values(RMSNormalization(), ragged)
    assert_close(y.flat_values, reference.rms_norm(ragged.flat_values))
    for call in (
        lambda: rms_norm(ragged),
        lambda: RMSNormalization()(keras.Input((None, 2), ragged=True)),
    ):
        with pytest.raises(TypeError, match=r"must be dense, .*map_flat_values"):
            call()


UNKNOWN = {
    "gate": ([(None, None, 8)] * 2, lambda x, gate: rms_norm(x, gate=gate)),
    "gate-of-unknown-batch": ([(None, 8)] * 2, lambda x, gate: rms_norm(x, gate=gate)),
    "gate-without-batch": ([(None,)] * 2, lambda x, gate: rms_norm(x, gate=gate)),
    "gate-of-unknown-rank": ([(None, None, 8), None], lambda x, gate: rms_norm(x, gate=gate)),
    "scale": ([(None, None, None), (8,)], rms_norm),
    "scale-without-batch": ([(None,), (8,)], rms_norm),
    "scale-of-unknown-size": ([(None, None, None), (None,)], rms_norm),
    "scale-of-two-axes": (
        [(None, None, 8), (None, 8)],
        lambda x, scale: rms_norm(x, scale, scale_axis=(0, 2)),
    ),
}


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    ("kind", "fits", "others"),
    [
        (
            "gate",
            [(2, 6, 8)] * 2,
            [[(2, 6, 8), (6, 2, 8)], [(2, 6, 8), (2, 1, 8)], [(2, 1, 8), (2, 6, 8)]],
        ),
        ("gate-of-unknown-batch", [(2, 8)] * 2, [[(2, 8), (1, 8)], [(1, 8), (2, 8)]]),
        ("gate-without-batch", [(8,)] * 2, [[(8,), (1,)], [(1,), (8,)]]),
        ("gate-of-unknown-rank", [(2, 6, 8)] * 2, [[(2, 6, 8), (12, 8)]]),
        ("scale", [(2, 6, 8), (8,)], [[(2, 6, 1), (8,)]]),
        ("scale-without-batch", [(8,), (8,)], [[(1,), (8,)]]),
        ("scale-of-unknown-size", [(2, 6, 8), (8,)], [[(2, 6, 1), (8,)], [(2, 6, 8), (1,)]]),
        ("scale-of-two-axes", [(2, 6, 8), (2, 8)], [[(1, 6, 8), (2, 8)], [(2, 6, 8), (1, 8)]]),
    ],
)
def test_unknown_sizes_that_differ_are_not_broadcast(kind, fits, others, jit_compile):
    shapes, function = UNKNOWN[kind]
    specs = [tf.TensorSpec(shape) for shape in shapes]
    call = tf.function(function, input_signature=specs, jit_compile=jit_compile)
    given = [tf.random.stateless_normal(shape, (0, 0)) for shape in fits]
    assert_close(call(*given), function(*given))
    for shapes in others:
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            call(*map(tf.ones, shapes))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("dtype", "size"), [("float32", 1.5e19), ("float64", 1e154)])
def test_epsilon_is_inside_the_root_also_where_squares_overflow(dtype, size, fused):
    y = rms_norm(tf.constant([[size, size]], dtype), epsilon=size**2, fused=fused)
    assert_close(y, np.sqrt([[0.5, 0.5]]), dtype)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3])
@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 5e30), ("float64", 1e155), ("bfloat16", 5e30)]
)
def test_squares_that_overflow(dtype, size, epsilon, fused):
    rows = [
        [1, 0.5, -0.25, 1e-20],
        [1e-20, 2e-20, 3e-20, 4e-20],
        [0, 0, 0, 0],
        [1, 1, 1, 1],
        [1, 0, 0, 0],
    ]
    x = tf.constant(np.multiply(rows, size), dtype)
    x64 = tf.cast(x, tf.float64).numpy()
    # The reference would overflow in float64 as well, so divide its input, and epsilon with it.
    expected = reference.rms_norm(x64 / size, epsilon=epsilon / size / size)
    for actual, row in zip(
        tf.cast(rms_norm(x, epsilon=epsilon, fused=fused), tf.float64), expected, strict=True
    ):
        assert_close(actual, row, dtype)


@pytest.mark.parametrize("fused", [False, True])
def test_a_partial_statistic_that_overflows(fused):
    y = rms_norm(tf.constant([[1e30, 1e30, 2e30, 1.0]]), partial=0.5, fused=fused)
    assert_close(y, [[1, 1, 2, 1e-30]])


@pytest.mark.parametrize("fused", [False, True])
def test_large_entries_behind_a_small_partial_statistic(fused):
    y = rms_norm(tf.constant([[0.0, 0.0, 1e25, 2e25]]), partial=0.5, fused=fused)
    np.testing.assert_allclose(y, [[0, 0, 1e28, 2e28]], rtol=1e-6)


@pytest.mark.parametrize("fused", [False, True])
def test_a_tiny_gain(fused):
    y = rms_norm(tf.constant([[3.0, 4.0]]), tf.constant([1e-27, 1e-37]), fused=fused)
    np.testing.assert_allclose(y, [[3e-27 / np.sqrt(12.5), 4e-37 / np.sqrt(12.5)]], rtol=1e-6)


def test_a_sparse_tensor_is_refused():
    sparse = tf.sparse.from_dense(tf.eye(3))
    symbolic = keras.Input((3,), sparse=True)
    for norm, x in (
        (rms_norm, sparse),
        (RMSNormalization(), sparse),
        (RMSNormalization(), symbolic),
    ):
        with pytest.raises(TypeError, match=r"tensor. Use tf.sparse.to_dense"):
            norm(x)
