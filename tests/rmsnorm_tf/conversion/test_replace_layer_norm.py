"""Conversion by a plain swap."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, RMSNormGRU, RMSNormLSTM, replace_layer_norm
from tests import reference
from tests.backends import BACKEND, to_array
from tests.cases import assert_close
from tests.folding import LN, assert_stays, layers, norm, with_drawn_weights


def test_replace_swaps_every_layer_and_keeps_the_weights():
    x = keras.Input((4, 6), name="x")
    y = norm("on_input")(x)
    y = norm("over_two", axis=(1, 2))(layers.Activation("relu")(y))
    y = RMSNormLSTM(4, name="lstm", **LN)(y)
    y = layers.Bidirectional(RMSNormGRU(4, name="gru", **LN), name="both")(y)
    inner = keras.Sequential([keras.Input((4, 8)), norm("norm", center=False)], name="inner")
    model = with_drawn_weights(keras.Model(x, inner(y)))
    before = [to_array(weight) for weight in model.weights]
    report = replace_layer_norm(model).entries
    for a, b in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(to_array(a), b)
    assert not any(
        isinstance(layer, layers.LayerNormalization) for layer in model._flatten_layers()
    )
    assert model.get_layer("over_two").axis == (1, 2)
    assert model.get_layer("lstm").cell.normalization == "rms"
    names = [
        "on_input",
        "over_two",
        "lstm/cell",
        "both/forward_gru/cell",
        "both/backward_gru/cell",
        "inner/norm",
    ]
    assert report == [Conversion(name, True, "the mean is no longer subtracted") for name in names]


def test_a_gain_over_axes_in_another_order_stays():
    """Before Keras 3.16, weights over (-1, 1) have the shape (6, 4) and are read as (4, 6)."""
    x = keras.Input((4, 6))
    layer = norm("norm", axis=(-1, 1))
    [entry] = replace_layer_norm(keras.Model(x, layer(x))).entries
    assert entry.converted == (tuple(layer.weights[0].shape) == (4, 6))
    assert entry.converted or "counts its axes from both ends" in entry.reason


class Around(layers.Layer):
    """A layer with a norm inside, which passes its mask on."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.norm = norm("norm", axis=axis)
        self.supports_masking = True

    def call(self, x):
        return self.norm(x)


@pytest.mark.parametrize("make", [lambda axis: norm("norm", axis=axis), lambda axis: Around(axis)])
@pytest.mark.parametrize("axis", [-1, 1, [1, 2]])
@pytest.mark.parametrize("mask_zero", [True, False])
def test_a_norm_over_an_axis_with_a_mask_is_refused(make, axis, mask_zero):
    if BACKEND == "torch" and axis == 1:
        pytest.skip("Keras's LayerNormalization on PyTorch takes the last axes only")
    words = layers.Embedding(9, 4, mask_zero=mask_zero)
    model = keras.Sequential([keras.Input((5,), dtype="int32"), words, make(axis)])
    if mask_zero and axis != -1:
        with pytest.raises(ValueError, match=r"would fail: .*the mask"):
            replace_layer_norm(model)
    else:
        [entry] = replace_layer_norm(model).entries
        assert entry.converted
    assert to_array(model(np.array([[1, 2, 0, 0, 0]]))).shape == (1, 5, 4)


def test_replace_computes_rms_norm():
    model = with_drawn_weights(keras.Sequential([keras.Input((6,)), norm("norm", epsilon=1e-4)]))
    x = np.random.default_rng(0).normal(2.0, size=(3, 6)).astype(np.float32)
    gain, offset = model.get_weights()
    replace_layer_norm(model)
    assert_close(model(x), reference.rms_norm(x, gain, offset, epsilon=1e-4))


@keras.saving.register_keras_serializable(package="tests")
class MyNorm(layers.LayerNormalization):
    pass


@pytest.mark.parametrize(
    ("layer", "reason"),
    [(MyNorm(name="norm"), "norm (MyNorm)"), (norm("norm", epsilon=0.0), "epsilon=0.0")],
)
def test_replace_reports_what_stays(layer, reason):
    model = keras.Sequential([keras.Input((6,)), layer, norm("plain")])
    stays, plain = replace_layer_norm(model).entries
    assert_stays(stays, reason)
    assert plain.converted
    assert type(model.layers[0]) is type(layer)


def test_a_norm_of_integers_is_refused():
    x = keras.Input((6,), dtype="int32")
    model = keras.Model(x, norm("plain")(norm("norm")(x)))
    with pytest.raises(ValueError, match=r"would fail: TypeError: .* got int32"):
        replace_layer_norm(model)
    assert model(np.ones((2, 6), np.int32)).shape == (2, 6)


def test_inputs_stay_as_they_are():
    x = keras.Input((6,), name="x")
    y = keras.Input((6,), name="y", optional=True)
    either = layers.Lambda(lambda both: both[0] if both[1] is None else both[1], output_shape=(6,))(
        [x, y]
    )
    model = keras.Model({"x": x, "y": y}, norm("norm")(either))
    assert replace_layer_norm(model).entries[0].converted
    assert model({"x": np.ones((2, 6)), "y": None}).shape == (2, 6)
