"""Conversion of layers that other models have too, or that a loop calls."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import (
    RMSNormGRUCell,
    fold_layer_norm,
    replace_layer_norm,
    replace_rms_norm,
)
from tests.backends import to_array
from tests.folding import (
    assert_same_outputs,
    assert_stays,
    dense,
    fold,
    layers,
    norm,
    outputs_of,
    with_drawn_weights,
)
from tests.parameters import quick_one_of

CONVERSIONS = [fold_layer_norm, replace_layer_norm, replace_rms_norm]


def norm_for(convert):
    return layers.RMSNormalization(name="norm") if convert is replace_rms_norm else norm("norm")


@pytest.mark.parametrize("convert", quick_one_of(3, CONVERSIONS))
def test_a_layer_that_another_model_has_too_stays_until_that_is_gone(convert):
    x = keras.Input((4, 6))
    y = norm_for(convert)(dense()(x))
    model = with_drawn_weights(keras.Model(x, dense("head")(y)))
    other = keras.Model(x, [y, dense("another")(y)], name="other")
    before = model.get_weights()
    [entry] = convert(model).entries
    assert_stays(entry, "norm", "'other'")
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    del other
    assert convert(model).entries[0].converted


@pytest.mark.parametrize("activation", [None, "relu"])
def test_a_map_that_another_model_has_too_stays(activation):
    """Neither its weights are centred nor the mean of its output is subtracted."""
    x = keras.Input((4, 6))
    y = dense(activation=activation)(x)
    model = keras.Model(x, [norm(f"norm_{i}")(y) for i in range(3)])
    other = keras.Model(x, y, name="other")
    before = outputs_of(with_drawn_weights(other))
    for entry in fold_layer_norm(model).entries:
        assert_stays(entry, "dense", *(["'other'"] if activation is None else []))
    assert_same_outputs(before, other)


@pytest.mark.slow
def test_a_cell_that_another_model_has_too_stays():
    x = keras.Input((4, 6))
    cell = RMSNormGRUCell(6, normalization="layer", name="cell")
    y = layers.RNN(cell, return_sequences=True, name="gru")(dense()(x))
    model = with_drawn_weights(keras.Model(x, dense("head")(y)))
    other = keras.Model(x, y, name="other")
    before = model.get_weights()
    for convert in (fold_layer_norm, replace_layer_norm):
        assert not any(entry.converted for entry in convert(model).entries)
        assert (cell.normalization, other.name) == ("layer", "other")
        for a, b in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("convert", quick_one_of(3, CONVERSIONS))
def test_models_of_the_same_graph_and_around_it_go_along(convert):
    """All models with the graph, and one that calls it, must be compiled again."""
    x = keras.Input((4, 6))
    model = with_drawn_weights(keras.Model(x, dense("head")(norm_for(convert)(dense()(x)))))
    same = keras.Model(model.input, model.output)
    outer = keras.Sequential([keras.Input((4, 6)), model, dense()])
    data = np.ones((2, 4, 6), "float32")
    for each in (model, same, outer):
        each.compile("sgd", "mse")
        each.predict(data, verbose=0)
    assert [entry.converted for entry in convert(same).entries] == [True]
    expected = to_array(model(data))
    np.testing.assert_allclose(same.predict(data, verbose=0), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        outer.predict(data, verbose=0), to_array(outer(data)), rtol=1e-5, atol=1e-5
    )
    for each in (model, same, outer):
        with pytest.raises(ValueError, match="compile"):
            each.fit(data, data, verbose=0)


def test_a_map_that_a_model_around_it_calls_alone_stays():
    """As the embedding of a backbone in a language model."""
    x = keras.Input((4, 6))
    shared = dense("shared")
    model = with_drawn_weights(keras.Model(x, norm("norm")(shared(x)), name="inner"))
    outer = keras.Model(x, shared(model(x)), name="outer")
    before = outputs_of(outer)
    [entry] = fold_layer_norm(model).entries
    assert_stays(entry, "shared", "'outer'")
    assert_same_outputs(before, outer)


@keras.saving.register_keras_serializable(package="tests")
class Loop(layers.Layer):
    def build(self, shape):
        self.norm = norm("norm")
        self.norm.build(shape[1:])

    def call(self, x):
        return tf.map_fn(self.norm, x)


def test_a_norm_in_a_loop_is_reported():
    x = keras.Input((4, 6))
    report = fold(keras.Model(x, Loop(name="loop")(dense()(x))))
    assert_stays(report["loop/norm"], "in a loop")


@keras.saving.register_keras_serializable(package="tests")
class AlsoInLoop(layers.Layer):
    """Four norms read a stream, and a loop calls the layer that begins it too."""

    def build(self, shape):
        self.first = dense("first", activation="gelu")
        self.norms = [norm(f"norm_{i}") for i in range(4)]
        for layer in (self.first, *self.norms):
            layer.build(shape)

    def call(self, x):
        y = self.first(x)
        return tf.concat([*(norm(y) for norm in self.norms), tf.map_fn(self.first, x)], -1)


def test_nothing_is_subtracted_from_a_layer_that_a_loop_calls_too():
    x = keras.Input((4, 6))
    report = fold(keras.Model(x, AlsoInLoop(name="outer")(x)))
    assert {entry.reason for entry in report.values()} == {"outer/first has the activation gelu"}
