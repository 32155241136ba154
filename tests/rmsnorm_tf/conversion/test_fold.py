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
    converted,
    dense,
    feed_forward,
    fold,
    layers,
    norm,
    pre_ln_transformer,
    tagger,
    with_drawn_weights,
)
from tests.parameters import slow


def test_pre_ln_transformer(policy):
    model = pre_ln_transformer()
    report = fold(model)
    assert all(entry.converted for entry in report.values())
    assert list(report) == ["norm_0a", "norm_0b", "norm_1a", "norm_1b", "last"]
    assert report["norm_0a"].reason == "centring folded into words, places"
    assert report["last"].reason.endswith(", attention_0/attention_output and 3 more")
    assert not any(isinstance(layer, layers.LayerNormalization) for layer in model.layers)


def test_a_block_as_in_keras_hub(policy):
    """Two embeddings, a padding mask, pre-LN blocks, and a pooled head beside the sequence."""
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    positions = keras.Input((5,), dtype="int32", name="positions")
    words = layers.Embedding(7, 6, mask_zero=True, name="words")
    x = layers.Add(name="embedded")(
        [words(tokens), layers.Embedding(5, 6, name="places")(positions)]
    )
    padding = keras.ops.not_equal(tokens, 0)[:, None, :]
    for i in range(2):
        y = norm(f"norm_{i}a", epsilon=1e-5)(x)
        y = layers.MultiHeadAttention(2, 3, dropout=0.1, name=f"attention_{i}")(
            y, y, attention_mask=padding
        )
        x = feed_forward(x + layers.Dropout(0.0)(y), i)
    sequence = norm("last", epsilon=1e-5)(x)
    pooled = layers.Dense(6, "tanh", name="pooled")(sequence[:, 0])
    report = fold(keras.Model([tokens, positions], {"sequence": sequence, "pooled": pooled}))
    assert len(report) == 5
    assert all(entry.converted for entry in report.values())


def test_dense_stack(policy):
    model = keras.Sequential([keras.Input((4,), name="x")], name="stack")
    for i, units in enumerate((8, 5)):
        model.add(layers.Dense(units, use_bias=i == 0, name=f"dense_{i}"))
        model.add(norm(f"norm_{i}", epsilon=10.0**-i, scale=i == 0, center=i == 1))
        model.add(layers.ReLU())
    originals = {
        layer.name: (layer, layer.get_config(), layer.get_weights()) for layer in model.layers
    }
    report = fold(model)
    assert report["norm_0"] == Conversion("norm_0", True, "centring folded into dense_0")
    assert report["norm_1"] == Conversion("norm_1", True, "centring folded into dense_1")
    for layer in model.layers:
        if isinstance(layer, RMSNormalization):
            original, config, weights = originals[layer.name]
            assert layer is original
            assert layer.epsilon == config["epsilon"]
            assert (layer.use_scale, layer.center) == (config["scale"], config["center"])
            assert len(layer.weights) == len(weights)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_stack(rank, policy):
    conv = {1: layers.Conv1D, 2: layers.Conv2D, 3: layers.Conv3D}[rank]
    model = keras.Sequential([keras.Input((6,) * rank + (3,))])
    for i in range(2):
        model.add(conv(4, 3, padding="same", dilation_rate=2, name=f"conv_{i}"))
        model.add(norm(f"norm_{i}"))
        model.add(layers.Activation("gelu"))
    assert [entry.converted for entry in fold(model).values()] == [True, True]


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
    assert fold(keras.Model(x, norm("norm")(y)))["norm"].converted


def test_grouped_query_attention(policy):
    x = keras.Input((5, 6))
    y = layers.GroupQueryAttention(3, 4, 2, name="attention")(x, x)
    report = fold(keras.Model(x, norm("norm")(y)))
    assert report["norm"].reason.endswith(" attention/attention_output")


def test_maps_and_norms_in_several_places(policy):
    a = keras.Input((4,))
    b = keras.Input((4,))
    dense = layers.Dense(5, name="dense")
    shared = norm("shared")
    report = fold(
        keras.Model([a, b], [shared(dense(a)), shared(dense(b)), norm("own")(dense(a) + dense(b))])
    )
    assert all(entry.converted for entry in report.values())


def test_a_narrow_operand_of_a_sum(policy):
    """It adds the same to all channels, which LayerNorm does not see."""
    x = keras.Input((4, 6))
    report = fold(keras.Model(x, norm("norm")(dense()(x) + dense("one", units=1)(x))))
    assert report["norm"].reason == "centring folded into dense, one"


@pytest.mark.parametrize(
    "between",
    [lambda: layers.Dropout(0.5, noise_shape=(None, 4, 1), seed=0), lambda: layers.Rescaling(2.0)],
)
def test_a_zero_that_is_added_or_taken_for_all_channels(between):
    x = keras.Input((4, 6))
    report = fold(keras.Model(x, norm("norm")(between()(dense()(x)))))
    assert report["norm"] == Conversion("norm", True, "centring folded into dense")


def test_lora_weights_are_centred_too():
    """In float32: Keras keeps these weights in float32 under every policy."""
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm")])
    model.get_layer("dense").enable_lora(2)
    assert fold(model)["norm"].converted


def test_post_ln_without_gain(policy):
    """Offsets can be centred too, and without them there is nothing to centre."""
    x = keras.Input((4, 6))
    y = norm("first", scale=False)(layers.Dense(6, name="dense")(x))
    y = norm("second", scale=False, center=False)(y)
    z = norm("third")(layers.Add()([y, layers.Dense(6, name="branch")(y)]))
    report = fold(keras.Model(x, z))
    assert report["second"].reason == "centring folded into first"
    assert report["third"].reason == "centring folded into branch"


def test_models_inside_are_looked_into(policy):
    x = keras.Input((4, 6), name="x")
    inner = keras.Model(x, norm("after_dense")(dense()(norm("on_input")(x))), name="inner")
    stack = keras.Sequential([dense(), norm("norm")], name="stack")
    outer = keras.Sequential([keras.Input((4, 6), name="outer"), inner, stack])
    report = fold(outer)
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
    model = keras.Model(x, RMSNormGRU(4, name="gru", **LN)(y))
    assert all(entry.converted for entry in fold(model).values())
    assert model.get_layer("norm").dtype_policy.name == policy


def test_the_inputs_keep_their_structure():
    x = {"a": keras.Input((6,), name="a"), "b": keras.Input((6,), name="b")}
    model = keras.Model(x, {"y": norm("norm")(dense()(x["a"]) + dense("other")(x["b"]))})
    data = {"a": np.ones((2, 6)), "b": -np.ones((2, 6))}
    before = model(data)["y"]
    [entry] = fold_layer_norm(model).entries
    assert entry.converted
    np.testing.assert_allclose(model(data)["y"], before, rtol=0, atol=1e-5)


def test_masks_reach_the_layers_behind():
    model = tagger(layers.GRU(4, return_sequences=True))
    model = keras.Model(model.input, layers.GRU(3)(norm("again")(dense("more")(model.output))))
    padded = np.array([[1, 2, 3, 0, 0]])
    before = with_drawn_weights(model)(padded)
    assert all(entry.converted for entry in fold(model).values())
    np.testing.assert_allclose(model(padded), before, rtol=0, atol=1e-5)


def test_regularizers_initializers_and_constraints_go_along():
    kinds = ("initializer", "regularizer", "constraint")
    gain = [keras.initializers.Zeros, keras.regularizers.L2, keras.constraints.MaxNorm]
    offset = [keras.initializers.Ones, keras.regularizers.L1, keras.constraints.NonNeg]
    arguments = {f"gamma_{kind}": make() for kind, make in zip(kinds, gain, strict=True)}
    arguments |= {f"beta_{kind}": make() for kind, make in zip(kinds, offset, strict=True)}
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm", **arguments)])
    fold_layer_norm(model)
    layer = model.get_layer("norm")
    assert [type(getattr(layer, f"scale_{kind}")) for kind in kinds] == gain
    assert [type(getattr(layer, f"offset_{kind}")) for kind in kinds] == offset
    assert [type(weight.constraint) for weight in (layer.scale, layer.offset)] == [
        gain[2],
        offset[2],
    ]


def test_adapted_layers_and_functions_go_along():
    x = keras.Input((4,), name="x")
    scaled = layers.Normalization()
    scaled.adapt(np.arange(12.0).reshape(3, 4))
    model = keras.Model(x, norm("norm")(dense()(layers.Lambda(lambda t: 2 * t)(scaled(x)))))
    assert converted(fold_layer_norm, model)[0].converted


def test_a_folded_model_is_saved_and_trained(tmp_path):
    model = tagger(RMSNormGRU(4, name="gru", **LN))
    fold(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_same_outputs(model, loaded)
    loaded.compile(keras.optimizers.SGD(0.1), "mse")
    words = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    y = np.zeros((2, 5, 3))
    losses = loaded.fit(words, y, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[1] < losses[0]


@pytest.mark.parametrize("convert", [fold_layer_norm, *slow(replace_layer_norm)])
def test_what_is_frozen_stays_frozen(convert):
    for path in ("alone", "attention", "first", "inner", "all"):
        x = keras.Input((4, 6))
        attention = layers.MultiHeadAttention(2, 3, name="attention")
        inner = keras.Sequential([keras.Input((4, 6)), dense(), norm("norm")])
        model = keras.Model(x, inner(norm("first")(attention(x, x))))
        parts = {
            "alone": inner.get_layer("norm").beta,
            "attention": attention.query_dense,
            "inner": inner.layers[0],
        }
        {**parts, "first": model.get_layer("first"), "all": model}[path].trainable = False
        before = [w.trainable for w in model.weights]
        assert convert(model).entries[0].converted
        assert [w.trainable for w in model.weights] == before
