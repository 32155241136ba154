"""The gains of a LayerScale, which linear maps take over."""

import contextlib

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, fold_layer_norm
from tests.folding import assert_same_outputs, dense, layers, norm, outputs_of, with_drawn_weights
from tests.operations import Scale


def test_a_layer_scale_with_zeros_stays():
    x = keras.Input((6,))
    scale = Scale(name="scale")
    model = keras.Model(x, norm("norm")(scale(dense()(x))))
    scale.weights[0].assign(np.eye(6)[0])
    report = fold_layer_norm(model).entries
    reason = "scale multiplies by 0, which weights would not recover from in training"
    assert report == [Conversion("norm", False, reason)]


def test_a_layer_scale_stays_behind_a_kernel_with_a_constraint():
    x = keras.Input((6,))
    model = keras.Model(x, norm("norm")(Scale(name="scale")(dense(kernel_constraint="non_neg")(x))))
    [entry] = fold_layer_norm(model).entries
    assert entry.reason == "dense has a constraint on its kernel, which a change might break"


def read_elsewhere(shared, scale, x):
    return [scale(shared(x)), layers.Activation("tanh")(scale(shared(2 * x)))]


def of_other_weights_too(shared, scale, x):
    return [scale(shared(x)), layers.ReLU()(scale(shared(x) + dense("other")(x)))]


def behind_a_norm_too(shared, scale, x):
    return [scale(shared(x)), scale(norm("first", scale=False, center=False)(shared(2 * x)))]


def without_the_map(shared, scale, x):
    return [scale(shared(x)), layers.ReLU()(scale(x))]


@pytest.mark.parametrize("make", [read_elsewhere, of_other_weights_too, behind_a_norm_too, without_the_map])
def test_a_model_with_a_map_or_a_layer_scale_that_is_used_twice_is_never_changed_wrongly(make):
    x = keras.Input((6,))
    scaled, other = make(dense("shared"), Scale(name="scale"), x)
    model = with_drawn_weights(keras.Model(x, [norm("norm")(scaled), other]))
    before = outputs_of(model)
    with contextlib.suppress(ValueError):
        fold_layer_norm(model)
    assert_same_outputs(before, model)
