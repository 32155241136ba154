"""The gains of a LayerScale, which linear maps take over."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import fold_layer_norm
from tests.folding import assert_stays, dense, fold, layers, norm
from tests.operations import Scale


def test_a_layer_scale_with_zeros_stays():
    x = keras.Input((6,))
    scale = Scale(name="scale")
    model = keras.Model(x, norm("norm")(scale(dense()(x))))
    scale.weights[0].assign(np.eye(6)[0])
    [entry] = fold_layer_norm(model).entries
    assert_stays(entry, "scale multiplies by 0")


def test_a_layer_scale_stays_behind_a_kernel_with_a_constraint():
    x = keras.Input((6,))
    model = keras.Model(x, norm("norm")(Scale(name="scale")(dense(kernel_constraint="non_neg")(x))))
    [entry] = fold_layer_norm(model).entries
    assert_stays(entry, "dense", "constraint on its kernel")


def read_elsewhere(shared, scale, x):
    return [scale(shared(x)), layers.Activation("tanh")(scale(shared(2 * x)))]


def of_other_weights_too(shared, scale, x):
    return [scale(shared(x)), layers.ReLU()(scale(shared(x) + dense("other")(x)))]


def behind_a_norm_too(shared, scale, x):
    first = norm("first", scale=False, center=False)(shared(2 * x))
    return [scale(shared(x)), norm("behind")(scale(first))]


def without_the_map(shared, scale, x):
    return [scale(shared(x)), layers.ReLU()(scale(x))]


def without_the_gain(shared, scale, x):
    return [scale(shared(x)), layers.ReLU()(shared(2 * x))]


def read_before_the_gain(shared, scale, x):
    y = shared(x)
    return [scale(y), layers.ReLU()(y)]


@keras.saving.register_keras_serializable(package="tests")
class ScaleThatReturnsItsGain(Scale):
    def call(self, x):
        gain = keras.ops.reshape(self.gain, (-1,))  # read once, used twice
        return x * gain, keras.ops.tile(gain[None], (keras.ops.shape(x)[0], 1))


def and_the_gain(shared, scale, x):
    return ScaleThatReturnsItsGain(name="scale")(shared(x))


USED_TWICE = [
    read_elsewhere,
    of_other_weights_too,
    behind_a_norm_too,
    without_the_map,
    without_the_gain,
    read_before_the_gain,
    and_the_gain,
]


@pytest.mark.parametrize("make", USED_TWICE)
def test_a_layer_scale_stays_if_it_or_the_map_before_it_is_used_otherwise_too(make):
    x = keras.Input((6,))
    scaled, other = make(dense("shared"), Scale(name="scale"), x)
    report = fold(keras.Model(x, [norm("norm")(scaled), other]))
    assert_stays(report["norm"], "the output of scale", "(Mul)")


def test_a_map_and_a_layer_scale_that_are_used_twice_together_become_one():
    x = keras.Input((6,))
    shared = dense("shared")
    scale = Scale(name="scale")
    report = fold(
        keras.Model(x, [norm("norm")(scale(shared(x))), norm("other")(scale(shared(2 * x)))])
    )
    assert {entry.reason for entry in report.values()} == {"centring folded into shared"}
