"""Outputs are compared: if they differ, all is undone, and otherwise nothing else is disturbed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import Conversion, RMSNormGRU, fold_layer_norm, replace_rms_norm
from tests.folding import assert_same_outputs, dense, layers, norm, outputs_of, with_drawn_weights


@keras.saving.register_keras_serializable(package="tests")
class Watched(layers.Layer):
    """A map, and the size of its kernel, which Python reads while the model runs."""

    def build(self, shape):
        self.map = dense("map")
        self.map.build(shape)

    def call(self, x):
        size = tf.py_function(lambda: tf.reduce_sum(abs(self.map.kernel)), [], x.dtype)
        return self.map(x), tf.reshape(size, [1])

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype), keras.KerasTensor((1,), x.dtype)


def state_of(model):
    """Returns what a conversion might change: classes, attributes and values."""
    layers = [
        (type(layer), list(vars(layer)), list(map(id, vars(layer).values())))
        for layer in model._flatten_layers()
    ]
    return layers, [(id(w), w.path, w.trainable, w.numpy().tolist()) for w in model.variables]


def assert_refused(convert, model, why):
    """Asserts that a conversion raises an error and leaves the model as it was, compiled or not."""
    model.compile("sgd", "mse")
    outputs = outputs_of(model)
    before = state_of(model)
    with pytest.raises(ValueError, match=f"^{why}(?s:.)*'model' is as before"):
        convert(model)
    assert state_of(model) == before
    assert model.compiled
    assert_same_outputs(outputs, model)
    model.predict(np.ones((3, *model.input_shape[1:])), verbose=0)


class Interrupted(layers.Layer):
    """Is interrupted once the norm before it is converted."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def call(self, x):
        if not isinstance(self.norm, layers.LayerNormalization):
            raise KeyboardInterrupt
        return x


def test_an_interrupted_conversion_is_undone():
    first = norm("norm")
    model = with_drawn_weights(
        keras.Sequential([keras.Input((6,)), dense(), first, Interrupted(first), dense("head")])
    )
    outputs = outputs_of(model)
    before = state_of(model)
    with pytest.raises(KeyboardInterrupt):
        fold_layer_norm(model)
    assert state_of(model) == before
    assert_same_outputs(outputs, model)


def test_a_fold_that_changes_the_outputs_is_undone_with_all_others():
    x = keras.Input((6,), name="x")
    y, size = Watched(name="watched")(norm("first")(dense("before")(x)))
    gru = RMSNormGRU(6, name="gru", normalization="layer")(
        layers.Reshape((2, 3))(dense("other")(x))
    )
    stream = dense("relu", activation="relu")(x)
    z = layers.Add()([norm(f"subtracted_{i}")(stream) for i in "abc"])
    z = norm("third")(dense("behind")(norm("second")(y) + gru + z))
    model = with_drawn_weights(keras.Model(x, [z, size], name="model"))
    assert_refused(fold_layer_norm, model, "The outputs would change by ")


@keras.saving.register_keras_serializable(package="tests")
class WatchedInTraining(Watched):
    def call(self, x, training=False):
        y, size = super().call(x)
        return y, size if training else keras.ops.zeros_like(size)

    def compute_output_spec(self, x, training=False):
        return super().compute_output_spec(x)


@keras.saving.register_keras_serializable(package="tests")
class WatchedFromAfar(Watched):
    def call(self, x):
        y, size = super().call(x)
        return y, 1.0 + 1e-5 * size


@pytest.mark.parametrize("make", [WatchedInTraining, WatchedFromAfar])
def test_a_change_in_training_alone_and_a_small_one_are_undone(make):
    x = keras.Input((6,), name="x")
    y, size = make(name="watched")(x)
    model = with_drawn_weights(keras.Model(x, [norm("norm")(y), size], name="model"))
    assert_refused(fold_layer_norm, model, "The outputs would change by ")


@keras.saving.register_keras_serializable(package="tests")
class Particular(layers.Layer):
    """Runs on large numbers only."""

    def call(self, x):
        tf.debugging.assert_greater(x, tf.cast(1e6, x.dtype), "too small")
        return x


def test_a_model_that_does_not_run_on_random_inputs_is_reported():
    x = keras.Input((6,), name="x")
    model = with_drawn_weights(keras.Model(x, norm("norm")(dense()(Particular()(x)))))
    [entry] = fold_layer_norm(model).entries
    assert entry.converted
    assert "; not checked, " in entry.reason
    assert "InvalidArgumentError" in entry.reason


@keras.saving.register_keras_serializable(package="tests")
class GlobalNoise(layers.Layer):
    def call(self, x, training=False):
        return x + keras.random.normal(keras.ops.shape(x), dtype=x.dtype) if training else x


def noisy():
    """Dropout, statistics of batches, and random numbers of the global seed."""
    x = keras.Input((6,), name="x")
    y = layers.BatchNormalization()(layers.Dropout(0.5, seed=3)(x))
    y = GlobalNoise()(layers.GaussianNoise(0.1)(y))
    return with_drawn_weights(keras.Model(x, [norm("norm")(dense()(y)), y]))


def test_seeds_and_statistics_stay_and_training_is_compared():
    model = noisy()
    numbers = []
    kept = [v for v in model.variables if not v.trainable]
    before = [v.numpy() for v in kept]
    for convert in (lambda model: None, fold_layer_norm):
        keras.utils.clear_session()  # in Keras 3.12 a seed alone starts no numbers anew
        keras.utils.set_random_seed(1)
        keras.random.normal((3,))  # makes the global seed
        report = convert(model)
        numbers.append(keras.random.normal((3,)).numpy())
    np.testing.assert_array_equal(*numbers)
    assert report.entries == [Conversion("norm", True, "centring folded into dense")]
    assert len(kept) >= 4
    for a, b in zip(kept, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_rms_norm])
def test_a_kernel_that_a_layer_assigns_in_training_stays(convert):
    x = keras.Input((6,), name="x")
    spectral = layers.SpectralNormalization(layers.Dense(6, name="wrapped"), name="spectral")
    y = layers.RMSNormalization(name="scaled")(norm("norm")(dense()(spectral(x))))
    model = with_drawn_weights(keras.Model(x, y))
    before = [v.numpy() for v in spectral.variables]
    report = convert(model).entries
    assert all(entry.converted for entry in report) and report
    for a, b in zip(spectral.variables, before, strict=True):
        np.testing.assert_array_equal(a, b)


@keras.saving.register_keras_serializable(package="tests")
class Noise(layers.Layer):
    def call(self, x, training=False):
        return x + tf.random.normal(tf.shape(x), dtype=x.dtype) if training else x


def test_a_model_whose_training_is_random_is_compared_at_inference():
    x = keras.Input((6,), name="x")
    [entry] = fold_layer_norm(
        with_drawn_weights(keras.Model(x, norm("norm")(dense()(Noise()(x)))))
    ).entries
    assert "; not checked for training=True" in entry.reason
    assert "the outputs are random" in entry.reason


@keras.saving.register_keras_serializable(package="tests")
class OnlyLong(layers.Layer):
    def call(self, x):
        tf.debugging.assert_greater(tf.shape(x)[1], 20)
        return x


def test_inputs_of_all_kinds_are_drawn():
    words = keras.Input((None,), dtype="int32", name="words")
    text = keras.Input((2,), dtype="string", name="text")
    x = keras.Input((None, 6), name="x")
    given = keras.Input((1,), dtype="bool", name="given")
    hashed = layers.Hashing(2)(text)
    few = layers.Embedding(2, 6)
    y = OnlyLong()(few(words)) + dense()(x) + keras.ops.mean(few(hashed), 1, keepdims=True)
    y = keras.ops.where(given[:, :, None], y, 2.0 * y)
    model = with_drawn_weights(keras.Model([words, text, x, given], norm("norm")(y)))
    [entry] = fold_layer_norm(model).entries
    assert entry.converted
    assert "not checked" not in entry.reason


@keras.saving.register_keras_serializable(package="tests")
class OnlyPositive(layers.Layer):
    def call(self, x):
        tf.debugging.assert_non_negative(x)
        return x


@keras.saving.register_keras_serializable(package="tests")
class Logarithm(layers.Layer):
    def call(self, x):
        return keras.ops.log(x)


@pytest.mark.parametrize("make", [OnlyPositive, Logarithm])
def test_inputs_may_have_to_be_positive_and_outputs_no_numbers(make):
    x = keras.Input((6,), name="x")
    y = OnlyPositive()(x) if make is OnlyPositive else x
    model = keras.Model(x, [norm("norm")(dense()(y)), make()(x)])
    report = fold_layer_norm(with_drawn_weights(model)).entries
    assert report == [Conversion("norm", True, "centring folded into dense")]


def test_rounding_is_no_difference():
    """The given model loses six digits to a mean that the fold takes away."""
    x = keras.Input((64,), name="x")
    large = dense("large", units=64)
    model = with_drawn_weights(keras.Model(x, dense("behind")(norm("norm")(large(x)))))
    large.kernel.assign(1e6 + large.kernel.numpy())
    report = fold_layer_norm(model).entries
    assert report == [Conversion("norm", True, "centring folded into large")]


def test_rounding_in_the_narrowest_layer_is_no_difference():
    x = keras.Input((64,), name="x")
    narrow = {"dtype": "mixed_bfloat16"}
    y = norm("norm", **narrow)(dense("narrow", units=64, **narrow)(x))
    report = fold_layer_norm(
        with_drawn_weights(keras.Model(x, dense("wide", dtype="float32")(y)))
    ).entries
    assert report == [Conversion("norm", True, "centring folded into narrow")]


def test_no_tensors_of_graphs_stay_in_the_losses():
    """A loss that an activity regularizer adds in a trace cannot be computed outside it."""
    x = keras.Input((6,))
    model = keras.Model(
        x, norm("norm")(dense()(layers.Dense(6, activity_regularizer="l2", name="first")(x)))
    )
    fold_layer_norm(model)
    assert model.losses == []
    model(np.ones((2, 6), np.float32))
    assert float(sum(model.losses)) > 0
