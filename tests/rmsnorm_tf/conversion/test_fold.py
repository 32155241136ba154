"""Conversion: what is folded has the same outputs, and all that belongs to a model goes along."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import (
    Conversion,
    RMSNormalization,
    RMSNormGRU,
    fold_layer_norm,
    replace_layer_norm,
)
from tests.folding import (
    LN,
    assert_same_outputs,
    dense,
    feed_forward,
    fold,
    layers,
    norm,
    pre_ln_transformer,
    tagger,
)
from tests.parameters import slow


def test_pre_ln_transformer(policy):
    folded, report = fold(pre_ln_transformer())
    assert all(entry.converted for entry in report.values())
    assert list(report) == ["norm_0a", "norm_0b", "norm_1a", "norm_1b", "last"]
    assert report["norm_0a"].reason == "centring folded into words, places"
    assert report["last"].reason == "centring folded into words, places, attention_0/attention_output and 3 more"
    assert not any(isinstance(layer, layers.LayerNormalization) for layer in folded.layers)


def test_a_block_as_in_keras_hub(policy):
    """Token and position embeddings, a padding mask, pre-LN blocks, and a pooled head beside the sequence."""
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    positions = keras.Input((5,), dtype="int32", name="positions")
    words = layers.Embedding(7, 6, mask_zero=True, name="words")
    x = layers.Add(name="embedded")([words(tokens), layers.Embedding(5, 6, name="places")(positions)])
    padding = keras.ops.not_equal(tokens, 0)[:, None, :]
    for i in range(2):
        y = norm(f"norm_{i}a", epsilon=1e-5)(x)
        y = layers.MultiHeadAttention(2, 3, dropout=0.1, name=f"attention_{i}")(y, y, attention_mask=padding)
        x = feed_forward(x + layers.Dropout(0.0)(y), i)
    sequence = norm("last", epsilon=1e-5)(x)
    pooled = layers.Dense(6, "tanh", name="pooled")(sequence[:, 0])
    _, report = fold(keras.Model([tokens, positions], {"sequence": sequence, "pooled": pooled}))
    assert len(report) == 5
    assert all(entry.converted for entry in report.values())


def test_dense_stack(policy):
    model = keras.Sequential([keras.Input((4,), name="x")], name="stack")
    for i, units in enumerate((8, 5)):
        model.add(layers.Dense(units, use_bias=i == 0, name=f"dense_{i}"))
        model.add(norm(f"norm_{i}", epsilon=10.0**-i, scale=i == 0, center=i == 1))
        model.add(layers.ReLU())
    folded, report = fold(model)
    assert type(folded) is keras.Sequential
    assert report["norm_0"] == Conversion("norm_0", True, "centring folded into dense_0")
    assert report["norm_1"] == Conversion("norm_1", True, "centring folded into dense_1")
    for layer in folded.layers:
        if isinstance(layer, RMSNormalization):
            original = model.get_layer(layer.name)
            assert layer.epsilon == original.epsilon
            assert (layer.use_scale, layer.center) == (original.scale, original.center)
            for a, b in zip(layer.weights, original.weights, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_stack(rank, policy):
    conv = {1: layers.Conv1D, 2: layers.Conv2D, 3: layers.Conv3D}[rank]
    model = keras.Sequential([keras.Input((6,) * rank + (3,))])
    for i in range(2):
        model.add(conv(4, 3, padding="same", dilation_rate=2, name=f"conv_{i}"))
        model.add(norm(f"norm_{i}"))
        model.add(layers.Activation("gelu"))
    _, report = fold(model)
    assert [entry.converted for entry in report.values()] == [True, True]


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes"),
    [
        ("abc,cd->abd", (None, 4), "d"),
        ("abc,dc->abd", (None, 4), None),
        ("...c,cd->...d", 4, "d"),
        ("abc,cde->abed", (None, 2, 4), "ed"),
    ],
)
def test_einsum_dense(equation, output_shape, bias_axes, policy):
    x = keras.Input((5, 3))
    y = layers.EinsumDense(equation, output_shape, bias_axes=bias_axes, name="einsum")(x)
    _, report = fold(keras.Model(x, norm("norm")(y)))
    assert report["norm"].converted


def test_grouped_query_attention(policy):
    x = keras.Input((5, 6))
    y = layers.GroupQueryAttention(3, 4, 2, name="attention")(x, x)
    _, report = fold(keras.Model(x, norm("norm")(y)))
    assert report["norm"].reason == "centring folded into attention/attention_output"


def test_maps_and_norms_in_several_places(policy):
    a, b = keras.Input((4,)), keras.Input((4,))
    dense, shared = layers.Dense(5, name="dense"), norm("shared")
    _, report = fold(keras.Model([a, b], [shared(dense(a)), shared(dense(b)), norm("own")(dense(a) + dense(b))]))
    assert all(entry.converted for entry in report.values())


def test_a_narrow_operand_of_a_sum(policy):
    """It adds the same to all channels, which LayerNorm does not see."""
    x = keras.Input((4, 6))
    _, report = fold(keras.Model(x, norm("norm")(dense()(x) + dense("one", units=1)(x))))
    assert report["norm"].reason == "centring folded into dense, one"


@pytest.mark.parametrize(
    "between", [lambda: layers.Dropout(0.5, noise_shape=(None, 4, 1), seed=0), lambda: layers.Rescaling(2.0)]
)
def test_a_zero_that_is_added_or_taken_for_all_channels(between):
    x = keras.Input((4, 6))
    _, report = fold(keras.Model(x, norm("norm")(between()(dense()(x)))))
    assert report["norm"] == Conversion("norm", True, "centring folded into dense")


def test_lora_weights_are_centred_too():
    """In float32: Keras keeps these weights in float32 under every policy."""
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm")])
    model.get_layer("dense").enable_lora(2)
    _, report = fold(model)
    assert report["norm"].converted


def test_post_ln_without_gain(policy):
    """Offsets can be centred too, and without them there is nothing to centre."""
    x = keras.Input((4, 6))
    y = norm("first", scale=False)(layers.Dense(6, name="dense")(x))
    y = norm("second", scale=False, center=False)(y)
    z = norm("third")(layers.Add()([y, layers.Dense(6, name="branch")(y)]))
    _, report = fold(keras.Model(x, z))
    assert report["second"].reason == "centring folded into first"
    assert report["third"].reason == "centring folded into branch"


def test_models_inside_are_looked_into(policy):
    x = keras.Input((4, 6), name="x")
    inner = keras.Model(x, norm("after_dense")(dense()(norm("on_input")(x))), name="inner")
    stack = keras.Sequential([dense(), norm("norm")], name="stack")
    outer = keras.Sequential([keras.Input((4, 6), name="outer"), inner, stack])
    _, report = fold(outer)
    assert {name: entry.converted for name, entry in report.items()} == {
        "inner/on_input": False,
        "inner/after_dense": True,
        "stack/norm": True,
    }
    assert report["inner/on_input"].reason == "outer is an input of the model"


@pytest.mark.parametrize("policy", ["mixed_bfloat16", *slow("mixed_float16")], indirect=True)
def test_mixed_precision(policy):
    x = keras.Input((4, 6))
    y = norm("norm")(dense()(x))
    folded, report = fold(keras.Model(x, RMSNormGRU(4, name="gru", **LN)(y)))
    assert all(entry.converted for entry in report.values())
    assert folded.get_layer("norm").dtype_policy.name == policy


def test_the_inputs_keep_their_structure():
    x = {"a": keras.Input((6,), name="a"), "b": keras.Input((6,), name="b")}
    model = keras.Model(x, {"y": norm("norm")(dense()(x["a"]) + dense("other")(x["b"]))})
    folded, report = fold_layer_norm(model)
    assert report[0].converted
    data = {"a": np.ones((2, 6)), "b": -np.ones((2, 6))}
    np.testing.assert_allclose(folded(data)["y"], model(data)["y"], rtol=0, atol=1e-5)


def test_frozen_layers_are_folded_and_stay_frozen():
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm"), dense("head")])
    model.get_layer("dense").trainable = model.get_layer("norm").trainable = False
    folded, report = fold(model)
    assert report["norm"].converted
    assert [layer.trainable for layer in folded.layers] == [False, False, True]


def test_masks_reach_the_layers_behind():
    model = tagger(layers.GRU(4, return_sequences=True))
    model = keras.Model(model.input, layers.GRU(3)(norm("again")(dense("more")(model.output))))
    folded, report = fold(model)
    assert all(entry.converted for entry in report.values())
    padded = np.array([[1, 2, 3, 0, 0]])
    np.testing.assert_allclose(folded(padded), model(padded), rtol=0, atol=1e-5)


def test_regularizers_initializers_and_constraints_go_along():
    kinds = ("initializer", "regularizer", "constraint")
    gain = [keras.initializers.Zeros, keras.regularizers.L2, keras.constraints.MaxNorm]
    offset = [keras.initializers.Ones, keras.regularizers.L1, keras.constraints.NonNeg]
    arguments = {f"gamma_{kind}": make() for kind, make in zip(kinds, gain, strict=True)}
    arguments |= {f"beta_{kind}": make() for kind, make in zip(kinds, offset, strict=True)}
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm", **arguments)])
    layer = fold_layer_norm(model)[0].get_layer("norm")
    assert [type(getattr(layer, f"scale_{kind}")) for kind in kinds] == gain
    assert [type(getattr(layer, f"offset_{kind}")) for kind in kinds] == offset
    assert [type(weight.constraint) for weight in (layer.scale, layer.offset)] == [gain[2], offset[2]]


def test_adapted_layers_and_functions_go_along():
    x = keras.Input((4,), name="x")
    scaled = layers.Normalization()
    scaled.adapt(np.arange(12.0).reshape(3, 4))
    model = keras.Model(x, norm("norm")(dense()(layers.Lambda(lambda t: 2 * t)(scaled(x)))))
    folded, report = fold_layer_norm(model)
    assert report[0].converted
    assert_same_outputs(model, folded)


@keras.saving.register_keras_serializable(package="tests")
class WithPreprocessor(keras.Model):
    """A model whose preprocessor is not in its config, as in KerasHub."""

    preprocessor = None

    def __init__(self, **kwargs):
        x = keras.Input((4,), name="x")
        super().__init__(x, norm("norm")(dense()(x)), **kwargs)

    def get_config(self):
        return {"name": self.name}


def test_a_preprocessor_goes_along():
    model = WithPreprocessor()
    model.preprocessor = object()
    folded, [entry] = fold_layer_norm(model)
    assert entry.converted
    assert folded.preprocessor is model.preprocessor


def test_a_folded_model_is_saved_and_trained(tmp_path):
    model = tagger(RMSNormGRU(4, name="gru", **LN))
    model.compile(loss=lambda y, prediction: 0.0)  # of no use to a copy
    folded, _ = fold(model)
    assert not folded.compiled
    folded.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_same_outputs(folded, loaded)
    loaded.compile(keras.optimizers.SGD(0.1), "mse")
    words, y = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]), np.zeros((2, 5, 3))
    losses = loaded.fit(words, y, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[1] < losses[0]


class Subclassed(keras.Model):
    def call(self, x):
        return x


class FunctionalSubclass(keras.Model):
    def __init__(self):
        x = keras.Input((4,))
        super().__init__(x, norm("norm")(dense()(x)))


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm])
def test_what_is_no_plain_model_is_refused(convert):
    for model in (Subclassed(), dense()):
        with pytest.raises(TypeError) as caught:
            convert(model)
        assert type(model).__name__ in str(caught.value)
        assert "keras.Model(inputs, outputs)" in str(caught.value)
    with pytest.raises(ValueError, match=r"has no input yet. Give it a keras.Input as its first layer."):
        convert(keras.Sequential([dense()]))
    with pytest.raises(ValueError, match=r"(?s)\(FunctionalSubclass\) cannot be copied from its config"):
        convert(FunctionalSubclass())


def test_the_graph_of_a_functional_subclass_can_be_folded():
    model = FunctionalSubclass()
    assert fold(keras.Model(model.input, model.output))[1]["norm"].converted


@pytest.mark.parametrize("convert", [fold_layer_norm, *slow(replace_layer_norm)])
def test_what_is_frozen_stays_frozen(convert):
    x = keras.Input((4, 6))
    attention = layers.MultiHeadAttention(2, 3, name="attention")
    inner = keras.Sequential([keras.Input((4, 6)), dense(), norm("norm")])
    model = keras.Model(x, inner(norm("first")(attention(x, x))))
    alone = inner.get_layer("norm").beta
    for part in (alone, attention.query_dense, model.get_layer("first"), inner.get_layer("dense"), model):
        part.trainable = False
        assert [w.trainable for w in convert(model)[0].weights] == [w.trainable for w in model.weights]
