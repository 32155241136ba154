"""Gains that linear maps take over: those of norms, and those of a LayerScale."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, RMSNormalization, fold_layer_norm, replace_rms_norm
from tests.folding import assert_same_outputs, converted, dense, fold, layers, norm, outputs_of, with_drawn_weights
from tests.operations import Scale


def test_gains_are_folded_into_the_kernel_of_a_convolution():
    model = keras.Sequential([keras.Input((4, 4, 3)), layers.RMSNormalization(name="norm")])
    model.add(layers.Conv2D(5, 3, padding="same", name="conv"))
    with_drawn_weights(model)
    before = outputs_of(model)
    replace_rms_norm(model)
    assert fold_layer_norm(model, fold_gains=True).entries == [Conversion("norm", True, "gain folded into conv")]
    assert_same_outputs(before, model)


@pytest.mark.parametrize("center", [False, True])
def test_a_zero_centered_gain_is_folded_with_its_one(center):
    zero_centered = RMSNormalization(zero_centered_scale=True, center=center, name="norm")
    model = with_drawn_weights(keras.Sequential([keras.Input((6,)), zero_centered, dense()]))
    report = converted(fold_layer_norm, model, fold_gains=True)
    assert report == [Conversion("norm", True, "gain folded into dense")]
    assert not model.get_layer("norm").use_scale


def test_gains_of_norms_that_were_replaced_before_are_reported():
    model = keras.Sequential([keras.Input((6,)), layers.RMSNormalization(name="first"), dense()])
    model.add(layers.RMSNormalization(name="last"))
    with_drawn_weights(model)
    replace_rms_norm(model)
    assert fold_layer_norm(model).entries == []
    report = converted(fold_layer_norm, model, fold_gains=True)
    assert report == [
        Conversion("first", True, "gain folded into dense"),
        Conversion("last", False, "gain stays: its output is an output of the model"),
    ]


@pytest.mark.parametrize("smallest", [0.0, 1e-4])
def test_a_small_gain_stays_as_its_offset_would_be_divided_by_it(smallest):
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm"), dense("head")])
    norm_layer = model.get_layer("norm")
    norm_layer.gamma.assign([smallest, *[-2000 * smallest] * 5])
    norm_layer.beta.assign(np.arange(6.0))
    [entry] = converted(fold_layer_norm, model, fold_gains=True)
    assert entry.reason.endswith("gain stays: it has entries near zero, by which the offset would be divided")


def test_a_gain_with_zeros_stays_as_the_kernel_behind_it_would_be_lost():
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm", center=False), dense("head")])
    model.get_layer("norm").gamma.assign([0.0, *[1.0] * 5])
    [entry] = converted(fold_layer_norm, model, fold_gains=True)
    assert entry.reason.startswith("centring folded into dense; gain stays: it has entries of 0")


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


def test_the_gain_of_a_norm_that_is_a_gate_stays():
    x = keras.Input((6,))
    gate = RMSNormalization(name="gate")(x)
    gated = RMSNormalization(center=True, name="gated")(dense()(x), gate=gate)
    model = with_drawn_weights(keras.Model(x, [dense("behind_gate")(gate), dense("behind_gated")(gated)]))
    report = converted(fold_layer_norm, model, fold_gains=True)
    reasons = {entry.name: entry.reason for entry in report}
    assert reasons["gate"].startswith("gain stays: its output also goes to gated")
    assert reasons["gated"] == "gain folded into behind_gated"


@pytest.mark.parametrize(
    "arguments",
    [
        {"partial": 0.5},
        {"partial": 0.25, "groups": 2, "center": True},
        {"partial": 0.5, "zero_centered_scale": True},
        {"axis": (1, 2), "scale_axis": -1},
        {"axis": (-1,)},
    ],
    ids=str,
)
def test_a_gain_along_the_last_axis_is_folded_whatever_the_statistic(arguments):
    rms = RMSNormalization(name="norm", **arguments)
    model = with_drawn_weights(keras.Sequential([keras.Input((4, 8)), rms, dense()]))
    report = converted(fold_layer_norm, model, fold_gains=True)
    assert report == [Conversion("norm", True, "gain folded into dense")]
    layer = model.get_layer("norm")
    assert (layer.axis, layer.partial, layer.groups) == (rms.axis, rms.partial, rms.groups)


@pytest.mark.parametrize(("axis", "named"), [(1, "1"), ((1, 2), "1, 2")])
def test_a_gain_along_other_axes_stays_with_a_reason(axis, named):
    model = keras.Sequential([keras.Input((4, 8)), RMSNormalization(axis, name="norm"), dense()])
    report = fold_layer_norm(with_drawn_weights(model), fold_gains=True).entries
    reason = f"gain stays: it is along axis {named}, and only gains along the last axis alone are folded"
    assert report == [Conversion("norm", False, reason)]


@keras.saving.register_keras_serializable(package="gains")
class SameNames(layers.Layer):
    """Two norms of the same name: the first is read by a map, the second is the output."""

    def build(self, shape):
        self.first, self.second, self.maps = norm("norm"), norm("norm"), [dense("in"), dense("out")]
        for layer in (self.first, self.second, *self.maps):
            layer.build(shape)

    def call(self, x):
        return self.second(self.maps[1](self.first(self.maps[0](x))))


def test_norms_of_the_same_name_have_reasons_of_their_own():
    x = keras.Input((6,))
    report = fold_layer_norm(with_drawn_weights(keras.Model(x, SameNames(name="two")(x))), fold_gains=True).entries
    assert report == [
        Conversion("two/norm", True, "centring folded into two/in; gain folded into two/out"),
        Conversion("two/norm", True, "centring folded into two/out; gain stays: its output is an output of the model"),
    ]
