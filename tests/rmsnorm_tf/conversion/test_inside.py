"""Conversion of norms inside layers, and what is subtracted where no weights centre a stream."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import Conversion, RMSNormalization, fold_layer_norm, replace_layer_norm
from tests.folding import (
    assert_same_outputs,
    assert_stays,
    dense,
    fold,
    layers,
    norm,
    with_drawn_weights,
)
from tests.operations import Scale
from tests.parameters import slow


@keras.saving.register_keras_serializable(package="inside")
class Block(layers.Layer):
    """A pre-LN block that makes its layers when it is built, some of them in a list."""

    def build(self, shape):
        self.norm = norm("norm")
        self.maps = [dense("hidden", 8, activation="relu"), dense("out", shape[-1])]
        self.norm.build(shape)
        self.maps[0].build(shape)
        self.maps[1].build((*shape[:-1], 8))

    def call(self, x):
        return x + self.maps[1](self.maps[0](self.norm(x)))


class InAFunction(Block):
    call = tf.function(Block.call)


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm])
def test_what_a_function_has_traced_stays(convert):
    model = keras.Sequential([keras.Input((4, 6)), InAFunction(name="block")])
    [entry] = convert(model).entries
    assert not entry.converted
    assert "block calls it inside a tf.function" in entry.reason


@keras.saving.register_keras_serializable(package="inside")
class Backbone(keras.Model):
    """A subclass that is built from a graph."""

    def __init__(self, depth=2, **kwargs):
        x = keras.Input((4, 6))
        self.blocks = [Block(name=f"block_{i}") for i in range(depth)]
        y = dense("embed")(x)
        for block in self.blocks:
            y = block(y)
        super().__init__(x, norm("last")(y), **kwargs)
        self.depth = depth

    def get_config(self):
        return {"depth": self.depth, "name": self.name}


def blocks(x, depth=2):
    for i in range(depth):
        x = Block(name=f"block_{i}")(x)
    return norm("last")(x)


def tied():
    tokens = keras.Input((5,), dtype="int32")
    words = layers.ReversibleEmbedding(7, 6, name="words")
    return keras.Model(tokens, words(blocks(words(tokens)), reverse=True))


def after_gelu():
    x = keras.Input((4, 6))
    return keras.Model(x, blocks(dense("first", activation="gelu")(x)))


def in_blocks():
    x = keras.Input((4, 6))
    return keras.Model(x, blocks(dense("embed")(x)))


MODELS = {"blocks": in_blocks, "subclass": Backbone, "gelu": after_gelu, "tied": tied}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_norms_inside_layers_are_folded(make, policy):
    model = make()
    report = fold(model)
    assert list(report) == ["block_0/norm", "block_1/norm", "last"]
    assert all(entry.converted for entry in report.values())
    block = model.get_layer("block_0")
    assert isinstance(block, Block)
    assert type(block.norm) is RMSNormalization


def test_what_no_weights_centre_is_subtracted_once():
    report = fold(after_gelu())
    assert "folded" not in report["block_0/norm"].reason
    assert "into block_0/out, block_1/out" in report["last"].reason
    for entry in report.values():
        assert "of first is subtracted once" in entry.reason


def branch(name):
    return dense(name, activation="gelu")


class ReadsWhatItKeeps(layers.Layer):
    """Has norms of something else than it returns."""

    def build(self, shape):
        self.norms = [norm(f"norm_{i}") for i in range(3)]
        for each in self.norms:
            each.build(shape)

    def call(self, x):
        kept = keras.ops.relu(x)
        return sum(each(kept) for each in self.norms)


def with_few_norms(x):
    return norm("last")(Block(name="block")(branch("stream")(x)))


def with_another_call_that_is_seen(x):
    shared = branch("shared")
    stream = shared(x)
    return [dense("seen")(shared(2.0 * x)), *(norm(f"norm_{i}")(stream) for i in range(3))]


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        (with_few_norms, "stream has the activation gelu"),
        (with_another_call_that_is_seen, "shared has the activation gelu"),
        (lambda x: norm("after")(ReadsWhatItKeeps()(x)), "(Relu)"),
    ],
)
def test_no_mean_is_subtracted_where_that_does_not_pay_or_is_seen(outputs, why):
    x = keras.Input((4, 6))
    first, *others = fold(keras.Model(x, outputs(x))).values()
    assert_stays(first, why)
    assert not any(entry.converted for entry in others)


def test_a_sum_of_two_streams_is_centred_by_one_subtraction():
    x = keras.Input((4, 6))
    report = fold(
        keras.Model(x, blocks(layers.Add(name="sum")([branch("left")(x), branch("right")(x)])))
    )
    assert "of sum is subtracted once" in report["block_0/norm"].reason


@pytest.mark.parametrize(("count", "pays"), [(3, False), (4, True)])
def test_each_of_two_subtractions_must_serve_three_norms(count, pays):
    """A norm that is shared by two streams needs both. A third stream does not count."""
    x = keras.Input((4, 6))
    streams = [branch("left")(x), branch("right")(x)]
    shared = norm("shared")
    other = branch("other")(x)
    outputs = [shared(stream) for stream in streams] + [norm(f"other_{i}")(other) for i in range(3)]
    outputs += [norm(f"norm_{i}")(streams[i % 2]) for i in range(count)]
    report = fold(keras.Model(x, outputs))
    assert {entry.converted for name, entry in report.items() if "other" not in name} == {pays}
    assert all(entry.converted for name, entry in report.items() if "other" in name)


@keras.saving.register_keras_serializable(package="inside")
class MasksItself(layers.Layer):
    """Sets the mask of its output in its call, as `keras.layers.Masking` does."""

    def call(self, x):
        y = keras.ops.gelu(x)
        y._keras_mask = keras.ops.any(keras.ops.not_equal(x, 0.0), -1)
        return y


def test_an_output_without_its_mean_keeps_its_mask():
    x = keras.Input((None, 6))
    stream = MasksItself(name="stream")(x)
    model = keras.Model(
        x, layers.GRU(3)(layers.Add()([norm(f"norm_{i}")(stream) for i in range(3)]))
    )
    padded = np.random.default_rng(0).normal(size=(2, 5, 6))
    padded[:, 3:] = 0
    before = with_drawn_weights(model)(padded)
    report = fold_layer_norm(model).entries
    assert all("of stream is subtracted once" in entry.reason for entry in report)
    np.testing.assert_allclose(model(padded), before, rtol=0, atol=1e-5)
    np.testing.assert_allclose(model(padded[:, :3]), before, rtol=0, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16"], indirect=True)
def test_a_mean_is_subtracted_in_float32(policy):
    """The mean of the stream is a hundred times its deviation."""
    x = keras.Input((64,))
    stream = dense("stream", units=64, activation="relu")
    y = stream(x)
    model = keras.Model(x, layers.Add()([norm(f"norm_{i}")(y) for i in range(3)]))
    stream.bias.assign(np.full(64, 100.3))
    data = np.random.default_rng(0).normal(size=(8, 64))
    expected = np.asarray(keras.ops.cast(model(data), "float32"))
    assert [entry.converted for entry in fold_layer_norm(model).entries] == [True] * 3
    actual = np.asarray(keras.ops.cast(model(data), "float32"))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0.01 * np.max(np.abs(expected)))


def test_tied_weights_stay_tied():
    model = with_drawn_weights(tied())
    words = model.get_layer("words")
    before = words.embeddings.numpy()
    assert "of words is subtracted once" in fold(model)["block_0/norm"].reason
    np.testing.assert_array_equal(words.embeddings, before)
    assert len(words.weights) == 1


@pytest.mark.parametrize("tied", [True, False])
def test_an_embedding_whose_weights_may_make_logits_elsewhere_keeps_them(tied):
    """As in a backbone, whose language model calls the embedding once more."""
    tokens = keras.Input((5,), dtype="int32")
    words = layers.ReversibleEmbedding(7, 6, tie_weights=tied, name="words")
    model = with_drawn_weights(keras.Model(tokens, norm("norm")(words(tokens))))
    before = words.embeddings.numpy()
    report = fold(model)
    if tied:
        assert_stays(report["norm"], "words make logits too")
        np.testing.assert_array_equal(words.embeddings, before)
    else:
        assert report["norm"] == Conversion("norm", True, "centring folded into words")


@pytest.mark.parametrize(
    "change_config", [lambda config: {**config, "name": "other", "trainable": False}]
)
def test_the_config_of_a_layer_changed_inside_is_open(change_config):
    model = in_blocks()
    fold(model)
    block = model.get_layer("block_0")
    other = type(block).from_config(change_config(block.get_config()))
    assert (other.name, other.trainable) == ("other", False)
    assert type(other.norm) is RMSNormalization
    other.set_weights(block.get_weights())
    x = np.random.default_rng(0).normal(size=(2, 4, 6))
    np.testing.assert_array_equal(other(x), block(x))

    def clone(layer):
        return (
            layer
            if not isinstance(layer, Block)
            else type(layer).from_config({**layer.get_config(), "name": f"new_{layer.name}"})
        )

    cloned = keras.models.clone_model(model, clone_function=clone)
    assert [layer.name for layer in cloned.layers][2:4] == ["new_block_0", "new_block_1"]


def test_a_config_that_does_not_say_how_a_changed_layer_was_built():
    model = in_blocks()
    fold(model)
    block = model.get_layer("block_0")
    config = block.get_config()
    del config["unchanged"]["build_config"]
    with pytest.raises(ValueError, match=r"'block_0' does not say .* built"):
        type(block).from_config(config)


def test_layer_scale(policy):
    x = keras.Input((4, 6))
    y = dense("embed")(x)
    y = y + Scale(name="scale")(dense("branch")(norm("first")(y)))
    model = keras.Model(x, norm("last")(y))
    assert fold(model)["last"].reason == "centring folded into embed, branch"
    np.testing.assert_array_equal(model.get_layer("scale").gain, np.ones(6))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] * (name != "gelu"))
        for name, make in MODELS.items()
    ],
)
@pytest.mark.parametrize("convert", [fold_layer_norm, *slow(replace_layer_norm)])
def test_norms_inside_layers_are_saved(make, convert, tmp_path):
    model = with_drawn_weights(make())
    assert convert(model).entries
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_same_outputs(model, loaded)
    assert type(loaded.get_layer("block_1").norm) is RMSNormalization
    assert fold_layer_norm(loaded).entries == []
    assert_same_outputs(model, loaded)


@pytest.mark.parametrize("make", [after_gelu, pytest.param(tied, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_a_folded_model_is_exported_quantized_and_trained(make, tmp_path):
    model = make()
    fold(model)
    model.export(tmp_path / "exported", verbose=False)
    x = np.ones((3, *model.inputs[0].shape[1:]), model.inputs[0].dtype)
    served = keras.layers.TFSMLayer(tmp_path / "exported", call_endpoint="serve")
    np.testing.assert_allclose(served(x), model(x), rtol=1e-5, atol=1e-5)
    model.compile("sgd", "mse")
    y = np.zeros((3, *model.output_shape[1:]))
    losses = model.fit(x, y, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[0]
    exact = np.asarray(model(x))
    model.quantize("int8")
    np.testing.assert_allclose(model(x), exact, atol=0.1 * np.max(np.abs(exact)))
