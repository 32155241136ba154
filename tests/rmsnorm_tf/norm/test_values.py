"""Values: against the equation in NumPy, and through its algebra."""

import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import rms_norm
from tests import reference
from tests.backends import gradients, to_array
from tests.cases import assert_close

PATHS = [False, True]


def draw(shape, dtype, seed=0):
    """Returns random numbers as a tensor, and exactly these numbers as float64."""
    t = ops.cast(np.random.default_rng(seed).normal(size=shape), dtype)
    return t, to_array(t)


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
    np.testing.assert_allclose(np.mean(to_array(y) ** 2, -1), 1, rtol=1e-14)
    np.testing.assert_allclose(
        to_array(rms_norm(-1e3 * x, epsilon=1e-30)), -to_array(y), rtol=1e-13
    )


def test_equals_layer_norm_on_zero_mean_input():
    x = np.random.default_rng(0).normal(size=(5, 64))
    x -= x.mean(-1, keepdims=True)
    assert_close(rms_norm(x), reference.layer_norm(x), "float64")


def test_partial_of_one_is_the_full_norm():
    x, _ = draw((5, 64), "float32")
    np.testing.assert_array_equal(to_array(rms_norm(x, partial=1.0)), to_array(rms_norm(x)))


def test_epsilon_is_inside_the_root():
    assert_close(rms_norm([[3.0, 3.0]], epsilon=16.0), [[0.6, 0.6]])


def test_a_row_that_is_not_finite_does_not_affect_others():
    y = rms_norm(ops.convert_to_tensor([[np.nan, 1.0], [3.0, 4.0], [np.inf, 1.0]]), epsilon=1e-12)
    assert_close(y[1], np.array([3, 4]) / np.sqrt(12.5))
    assert np.isnan(to_array(y[0])).all()
    np.testing.assert_array_equal(to_array(y[2]), [np.nan, 0])


@pytest.mark.parametrize("fused", PATHS)
def test_no_rows(fused):
    x = ops.zeros((0, 7, 8))
    scale = ops.ones(8)
    assert tuple(rms_norm(x, scale, fused=fused).shape) == (0, 7, 8)
    dx, dscale = gradients(lambda x, scale: rms_norm(x, scale, fused=fused), [x, scale], x)
    assert tuple(dx.shape) == (0, 7, 8)
    np.testing.assert_array_equal(to_array(dscale), np.zeros(8))


def test_a_single_row_without_batch():
    x, x64 = draw((16,), "float32")
    scale, scale64 = draw((16,), "float32", seed=1)
    assert_close(rms_norm(x, scale), reference.rms_norm(x64, scale64))
    [dscale] = gradients(lambda scale: rms_norm(x, scale), [scale], ops.ones(16))
    assert_close(dscale, reference.rms_norm(x64))


@pytest.mark.parametrize("epsilon", [1e-34, 1e-6, 1.0])
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e13, 1e17])
@pytest.mark.parametrize("partial", [None, 0.5])
def test_the_gradient_of_inputs_of_every_size(size, epsilon, partial):
    x, dy = (np.random.default_rng(0).normal(size=(2, 3, 16)) * [[[size]], [[1.0]]]).astype(
        np.float32
    )
    [dx] = gradients(
        lambda x: rms_norm(x, epsilon=epsilon, partial=partial), [x], ops.convert_to_tensor(dy)
    )
    count = 8 if partial else 16
    x = x.astype(np.float64)
    dy = dy.astype(np.float64)
    rstd = 1 / np.sqrt(np.mean(x[:, :count] ** 2, 1, keepdims=True) + epsilon)
    z = x * rstd
    expected = rstd * (dy - z * (np.arange(16) < count) * np.sum(dy * z, 1, keepdims=True) / count)
    assert_close(dx, expected, factor=10)
