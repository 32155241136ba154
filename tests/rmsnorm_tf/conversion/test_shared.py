"""Conversion of layers that a copy shares with the given model, or that a loop calls."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import (
    Conversion,
    RMSNormalization,
    RMSNormGRUCell,
    fold_layer_norm,
    replace_layer_norm,
    replace_rms_norm,
)
from tests.folding import assert_same_outputs, dense, fold, layers, norm, with_drawn_weights


@keras.saving.register_keras_serializable(package="tests")
class Block(layers.Layer):
    """Another layer and a map."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner, self.map = inner, dense("map")

    def build(self, shape):
        self.inner.build(shape)
        self.map.build(shape)

    def call(self, x):
        return self.map(self.inner(x))

    def get_config(self):
        return {**super().get_config(), "inner": keras.saving.serialize_keras_object(self.inner)}

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config.pop("inner")), **config)


@keras.saving.register_keras_serializable(package="tests")
class Adapted(Block):
    """A copy of a model shares it, because it may have learned something in `adapt`."""

    def adapt(self, data):
        pass


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm, replace_rms_norm])
@pytest.mark.parametrize("read", ["layer", "variable"])
def test_the_code_of_a_lambda_must_not_read_a_weight_that_is_copied(convert, read):
    """The logits of the copy would be made with the table of the given model."""
    words, tokens = layers.Embedding(9, 6, name="words"), keras.Input((4,), dtype="int32")
    x = norm("norm")(words(tokens))
    table = words.embeddings
    code = {
        "layer": lambda t: keras.ops.matmul(t, keras.ops.transpose(words.embeddings)),
        "variable": lambda t: keras.ops.matmul(t, keras.ops.transpose(table)),
    }
    logits = layers.Lambda(code[read], output_shape=(4, 9), name="logits")(x)
    with pytest.raises(ValueError, match=r"The code of 'logits' reads the weight 'words/embeddings' of 'words'"):
        convert(keras.Model(tokens, logits))


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm, replace_rms_norm])
def test_what_a_copy_shares_does_not_change(convert):
    x = keras.Input((4, 6))
    inside = layers.RMSNormalization(name="norm") if convert is replace_rms_norm else norm("norm")
    model = with_drawn_weights(keras.Model(x, Adapted(inside, name="shared")(dense()(x))))
    data = np.ones((2, 4, 6), np.float32)
    before = np.asarray(model(data))
    converted, report = convert(model)
    assert report == [Conversion("shared/norm", False, "norm is shared with the given model")]
    np.testing.assert_array_equal(model(data), before)
    np.testing.assert_array_equal(converted(data), before)


def test_nothing_is_subtracted_from_a_layer_that_a_copy_shares():
    x = keras.Input((4, 6))
    y = Adapted(layers.Identity(), name="outer")(x)
    model = keras.Model(x, [norm(f"norm_{i}")(y) for i in range(3)])
    with_drawn_weights(model)
    data = np.ones((2, 4, 6), np.float32)
    before = model.get_layer("outer").map(data).numpy()
    _, report = fold_layer_norm(model)
    np.testing.assert_array_equal(model.get_layer("outer").map(data), before)
    assert {entry.reason for entry in report} == {"map is shared with the given model"}


def test_a_shared_cell_and_a_shared_gain_do_not_change():
    x = keras.Input((4, 6))
    cell = RMSNormGRUCell(6, normalization="layer", name="cell")
    gru = Adapted(layers.RNN(cell, return_sequences=True, name="gru"), name="recurrent")
    y = Adapted(RMSNormalization(name="norm"), name="shared")(gru(dense()(x)))
    model = with_drawn_weights(keras.Model(x, y))
    before = model.get_weights()
    for convert in (functools.partial(fold_layer_norm, fold_gains=True), replace_layer_norm):
        _, report = convert(model)
        assert not any(entry.converted for entry in report)
        assert type(model.get_layer("shared").inner) is RMSNormalization
        assert model.get_layer("shared").inner.use_scale
        assert cell.normalization == "layer"
        for a, b in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(a, b)


@keras.saving.register_keras_serializable(package="tests")
class Loop(layers.Layer):
    make = layers.LayerNormalization

    def build(self, shape):
        self.norm = self.make(name="norm")
        self.norm.build(shape[1:])

    def call(self, x):
        return tf.map_fn(self.norm, x)


@keras.saving.register_keras_serializable(package="tests")
class LoopOverRMSNorm(Loop):
    make = RMSNormalization


def test_a_norm_in_a_loop_is_reported():
    x = keras.Input((4, 6))
    _, report = fold(keras.Model(x, Loop(name="loop")(dense()(x))))
    assert report["loop/norm"].reason == "norm is called in a loop or in another function, which is not looked into"


@keras.saving.register_keras_serializable(package="tests")
class AlsoInLoop(layers.Layer):
    """Four norms read a stream that begins with GELU, and the first layer is called in a loop too."""

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
    _, report = fold(keras.Model(x, AlsoInLoop(name="outer")(x)))
    assert {entry.reason for entry in report.values()} == {"outer/first has the activation gelu"}


def test_the_gain_of_a_norm_in_a_loop_stays():
    x = keras.Input((4, 6))
    model = with_drawn_weights(keras.Model(x, dense()(LoopOverRMSNorm(name="loop")(x))))
    folded, _ = fold_layer_norm(model, fold_gains=True)
    assert_same_outputs(model, folded)
