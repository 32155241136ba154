"""Changes inside a model in its files and pickles: what is loaded computes the same."""

import importlib
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import keras
import numpy as np
import pytest

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormLSTM,
    fold_layer_norm,
    replace_layer_norm,
    replace_rms_norm,
)
from tests.folding import (
    LN,
    assert_same_outputs,
    converted,
    dense,
    layers,
    norm,
    with_drawn_weights,
)
from tests.parameters import slow


def assert_saved(model, folder):
    """Saves a model and loads it, and compares outputs."""
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    assert_same_outputs(model, loaded)
    return loaded


def with_norms(stream):
    """Puts norms behind a stream that no weights centre: as many as a subtraction must serve."""
    return layers.Add()([norm(f"norm_{i}_of_{stream.name}")(stream) for i in range(3)])


@pytest.mark.slow
def test_a_subtracted_mean_is_saved_whatever_the_layer(tmp_path):
    streams = [
        layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.TimeDistributed(dense("map", activation="relu")),
        layers.RNN(layers.GRUCell(6), return_sequences=True),
        RMSNormGRU(6, return_sequences=True),
        RMSNormLSTM(6, return_sequences=True),
    ]
    x = keras.Input((4, 6))
    model = with_drawn_weights(keras.Model(x, [with_norms(stream(x)) for stream in streams]))
    entries = converted(fold_layer_norm, model)
    assert len(entries) >= len(streams) and all(entry.converted for entry in entries)
    assert_saved(model, tmp_path)


@keras.saving.register_keras_serializable(package="saved")
class Inner(layers.Layer):
    """A layer that makes its norm when it is built."""

    make = layers.LayerNormalization

    def build(self, shape):
        self.norm = self.make(name="norm")
        self.norm.build(shape)

    def call(self, x):
        return self.norm(x)


@keras.saving.register_keras_serializable(package="saved")
class InnerRMS(Inner):
    make = layers.RMSNormalization


@keras.saving.register_keras_serializable(package="saved")
class BuiltByCalls(layers.Layer):
    """A block that has no `build`: its layers are built when they are called."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = norm("norm")
        self.map = dense("map")
        self.inner = Inner(name="inner")
        self.gru = RMSNormGRU(6, name="gru", **LN)

    def call(self, x):
        return self.gru(self.inner(self.map(self.norm(x))))


@pytest.mark.filterwarnings("ignore:.*`build.*` was called on layer")
@pytest.mark.parametrize("convert", [fold_layer_norm, *slow(replace_layer_norm)])
def test_changes_in_a_layer_without_a_build_method_are_saved(convert, tmp_path):
    x = keras.Input((4, 6))
    model = with_drawn_weights(keras.Model(x, BuiltByCalls(name="block")(dense()(x))))
    assert [entry.converted for entry in convert(model).entries] == [True, True, True]
    block = assert_saved(model, tmp_path).get_layer("block")
    assert type(block.norm) is type(block.inner.norm) is RMSNormalization
    assert block.gru.cell.normalization == "rms"
    assert converted(replace_rms_norm, model) == []


@pytest.mark.slow
def test_a_norm_without_its_mean_is_converted_again(tmp_path):
    """The mean of the norm that begins a stream is subtracted, then the norm replaced."""
    x = keras.Input((4, 6))
    alone = norm("alone")(dense("first", activation="relu")(x))
    inside = Inner(name="block")(dense("second", activation="relu")(x))
    rms = InnerRMS(name="rms")(dense("third", activation="relu")(x))
    model = with_drawn_weights(keras.Model(x, [with_norms(y) for y in (alone, inside, rms)]))
    converted(replace_rms_norm, model)
    assert sum(entry.converted for entry in converted(fold_layer_norm, model)) == 9
    assert type(model.get_layer("rms").norm) is RMSNormalization
    assert_saved(model, tmp_path)
    report = replace_layer_norm(model).entries
    assert [entry.name for entry in report if entry.converted] == ["block/norm"]
    loaded = assert_saved(model, tmp_path)
    assert type(loaded.get_layer("block").norm) is RMSNormalization
    for made in (model, loaded):
        streams = keras.Model(
            made.input, [made.get_layer(name).output for name in ("alone", "block", "rms")]
        )
        for stream in streams(np.random.default_rng(0).normal(size=(2, 4, 6))):
            np.testing.assert_allclose(np.mean(stream, -1), 0, atol=1e-6)


@keras.saving.register_keras_serializable(package="saved")
class Wrapped(layers.Wrapper):
    """Its config holds the config of the layer inside."""

    def call(self, x):
        return self.layer(x)


@keras.saving.register_keras_serializable(package="saved")
class OwnGRU(RMSNormGRU):
    pass


@pytest.mark.parametrize("convert", [fold_layer_norm, *slow(replace_layer_norm)])
def test_changes_that_a_config_tells_already_are_saved(convert, tmp_path):
    model = keras.Sequential(
        [keras.Input((4, 3)), Wrapped(RMSNormGRU(6, **LN), name="wrapped"), OwnGRU(6, **LN)]
    )
    model.add(Wrapped(dense(), name="map"))
    model.add(Wrapped(norm("norm"), name="norm"))
    report = convert(with_drawn_weights(model)).entries
    assert [entry.converted for entry in report] == [True, True, True]
    loaded = assert_saved(model, tmp_path)
    assert loaded.get_layer("wrapped").layer.cell.normalization == "rms"
    assert type(loaded.get_layer("norm").layer) is RMSNormalization


@keras.saving.register_keras_serializable(package="saved")
class TwoKinds(Inner):
    """A layer with a LayerNorm and an RMS norm inside."""

    def build(self, shape):
        super().build(shape)
        self.other = layers.RMSNormalization(name="other")
        self.other.build(shape)

    def call(self, x):
        return self.other(self.norm(x))


def test_two_conversions_of_one_layer_are_saved(tmp_path):
    model = with_drawn_weights(keras.Sequential([keras.Input((6,)), TwoKinds(name="block")]))
    replace_layer_norm(model)
    replace_rms_norm(model)
    block = assert_saved(model, tmp_path).get_layer("block")
    assert (type(block.norm), type(block.other)) == (RMSNormalization, RMSNormalization)


# A process that reads the pickle of a functional model must have imported the classes in it.
OWN_MODEL = """
import keras
import numpy as np
import rmsnorm_tf

class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(8)
        self.norm = keras.layers.LayerNormalization()

    def call(self, x):
        return self.norm(self.dense(x))

@keras.saving.register_keras_serializable(package="own")
class Block(keras.layers.Layer):
    def build(self, shape):
        self.norm = keras.layers.LayerNormalization()
        self.norm.build(shape)

    def call(self, x):
        return self.norm(x)

def functional():
    x = keras.Input((5,))
    return keras.Model(x, Block()(keras.layers.Dense(8)(x)))

def outputs(model, x):
    return np.asarray(model(x))
"""


@pytest.mark.parametrize("convert", [fold_layer_norm, *slow(replace_layer_norm)])
@pytest.mark.parametrize("kind", ["Model", *slow("functional")])
def test_a_model_is_pickled_for_another_process(kind, convert, tmp_path, monkeypatch):
    (tmp_path / "own_model.py").write_text(OWN_MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("own_model")
    model = getattr(own, kind)()
    x = np.ones((2, 5))
    model(x)
    [entry] = convert(with_drawn_weights(model)).entries
    assert entry.converted
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))
    assert isinstance(again, keras.Model)
    np.testing.assert_allclose(again(x), model(x))
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning) as pool:
        np.testing.assert_allclose(pool.submit(own.outputs, model, x).result(), model(x), rtol=1e-6)
