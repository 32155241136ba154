"""The gains of a LayerScale, which linear maps take over."""

import keras
import numpy as np

from rmsnorm_tf import Conversion, fold_layer_norm
from tests.folding import dense, fold, layers, norm
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


def test_a_layer_scale_stays_whose_other_products_are_read_elsewhere():
    x = keras.Input((6,))
    shared, scale = dense("shared"), Scale(name="scale")
    activation = layers.Activation("tanh", name="tanh")
    report = fold(keras.Model(x, [norm("norm")(scale(shared(x))), activation(scale(shared(2 * x)))]))
    assert report["norm"] == Conversion("norm", False, "the output of scale also goes to tanh")


def test_a_layer_scale_stays_that_multiplies_other_weights_too():
    x = keras.Input((6,))
    shared, scale = dense("shared"), Scale(name="scale")
    y = scale(shared(x) + dense("other")(x))
    report = fold(keras.Model(x, [norm("norm")(scale(shared(x))), norm("behind")(layers.ReLU()(y))]))
    assert not report["norm"].converted
