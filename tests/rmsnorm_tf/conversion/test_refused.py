"""Conversion: what cannot be folded stays, with the reason in the report."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, RMSNormGRU, fold_layer_norm
from tests.folding import (
    LN,
    assert_stays,
    converted,
    dense,
    fold,
    layers,
    norm,
    pre_ln_transformer,
    with_drawn_weights,
)


class MyNorm(layers.LayerNormalization):
    pass


def after(*makers):
    """Builds a function from the input through these layers into a LayerNormalization."""

    def outputs(x):
        for layer in makers:
            x = layer(x)
        return norm("norm")(x)

    return outputs


def with_post_ln(x):
    y = norm("first")(dense()(x))
    return norm("norm")(y + dense("branch")(y))


def with_use_elsewhere(x):
    y = dense()(x)
    return [norm("norm")(y), dense("elsewhere")(y)]


def with_exposed_stream(x):
    y = dense()(x)
    return [norm("norm")(y), y]


def with_attention_on_the_stream(x):
    y = dense()(x)
    return norm("norm")(y + layers.MultiHeadAttention(2, 3, name="attention")(y, y))


def with_shared_map(x):
    shared = dense("shared")
    return [norm("norm")(shared(x)), dense("elsewhere")(shared(2 * x))]


def with_shared_norm(x):
    shared = norm("norm")
    return [shared(dense()(x)), shared(dense("relu", activation="relu")(x))]


def with_norms_over_time_and_channels(x):
    y = norm("over_time", center=False)(layers.Permute((2, 1))(dense()(x)))
    return norm("norm")(layers.Permute((2, 1))(y))


def with_scores(x):
    y, scores = layers.MultiHeadAttention(2, 3, name="attention")(
        x, x, return_attention_scores=True
    )
    return [norm("on_scores")(scores), norm("norm")(y)]


NOT_AFFINE = "is not affine in weights"
NOT_ZERO = "the mean is no longer zero"

REFUSED = {
    "post-norm": (with_post_ln, "post-norm", "first", "branch"),
    "dropout": (after(dense(), layers.Dropout(0.1, name="drop")), "drop drops", "for_inference"),
    "activation inside": (after(dense(activation="tanh")), "dense has the activation tanh"),
    "activation between": (
        after(dense(), layers.Activation("relu", name="relu")),
        "activation relu",
    ),
    "an unknown layer": (
        after(dense(), layers.Lambda(lambda x: abs(x), name="own")),
        "the output of own",
        NOT_AFFINE,
        "(Abs)",
    ),
    "used elsewhere": (with_use_elsewhere, "dense also goes to elsewhere"),
    "exposed": (with_exposed_stream, "dense is an output of the model"),
    "attention on the stream": (with_attention_on_the_stream, "dense also goes to attention"),
    "shared map": (with_shared_map, "shared also goes to elsewhere"),
    "shared norm": (with_shared_norm, "relu has the activation relu"),
    "input": (after(), "x is an input of the model"),
    "constraint": (after(dense(kernel_constraint="max_norm")), "dense", "constraint on its kernel"),
    "bias constraint": (after(dense(bias_constraint="non_neg")), "dense", "constraint on its bias"),
    "activity regularizer": (
        after(dense(activity_regularizer="l2")),
        "the output of dense",
        "an activity regularizer",
    ),
    "activity regularizer inside": (
        lambda x: norm("norm")(
            layers.MultiHeadAttention(2, 3, activity_regularizer="l2", name="attention")(x, x)
        ),
        "attention/attention_output",
        "an activity regularizer",
    ),
    "activity regularizer on a sum": (
        lambda x: norm("norm")(
            layers.Add(activity_regularizer="l2", name="sum")([dense()(x), dense("other")(x)])
        ),
        "the output of sum",
        "an activity regularizer",
    ),
    "a layer as activation": (
        after(dense(activation=layers.LeakyReLU(0.1, name="act"))),
        "the output of dense/act",
        "(LeakyRelu)",
    ),
    "groups": (after(layers.Conv1D(6, 1, groups=3, name="conv")), "conv has groups"),
    "diagonal": (after(layers.EinsumDense("abc,c->abc", (None, 6), name="einsum")), "(Einsum)"),
    "diagonal of the kernel": (
        after(layers.EinsumDense("abc,cdd->abd", (None, 6), name="einsum")),
        "(Einsum)",
    ),
    "constant": (lambda x: norm("norm")(dense()(x) + 1.0), "Add adds a constant"),
    "integers": (lambda x: norm("norm")(keras.ops.cast(x, "int32")), "norm", "not floating-point"),
    "another axis": (lambda x: norm("norm", axis=1)(dense()(x)), "axis [1]"),
    "two axes": (lambda x: norm("norm", axis=(1, 2))(dense()(x)), "axis [1, 2]"),
    "post-norm over another axis": (
        lambda x: norm("norm")(norm("first", axis=1, scale=False, center=False)(x)),
        "the output of first",
        NOT_AFFINE,
    ),
    "a norm over time between": (
        with_norms_over_time_and_channels,
        "over_time multiplies",
        "by a gain",
        NOT_ZERO,
    ),
    "no epsilon": (lambda x: norm("norm", epsilon=0.0)(dense()(x)), "norm has epsilon=0.0"),
    "a subclass": (lambda x: MyNorm(name="norm")(dense()(x)), "norm (MyNorm)"),
    "scores": (lambda x: with_scores(x)[0], "the output of attention/softmax"),
    "depthwise": (
        lambda x: norm("norm")(layers.DepthwiseConv1D(1, use_bias=False, name="conv")(x)),
        "conv",
    ),
}


@pytest.mark.filterwarnings("ignore:.*Lambda")
@pytest.mark.parametrize(("outputs", "words"), [(f, w) for f, *w in REFUSED.values()], ids=REFUSED)
def test_a_layer_norm_that_cannot_be_folded_stays_with_a_reason(outputs, words):
    x = keras.Input((4, 6), name="x")
    report = fold(keras.Model(x, outputs(x)))
    [entry] = [entry for name, entry in report.items() if name in ("norm", "on_scores")]
    assert_stays(entry, *words)


def test_a_quantized_map_inside_attention_is_refused():
    policy = keras.dtype_policies.DTypePolicyMap("float32")
    policy["attention/attention_output"] = keras.dtype_policies.get("int8_from_float32")
    x = keras.Input((4, 6))
    y = layers.MultiHeadAttention(2, 3, dtype=policy, name="attention")(x, x)
    [entry] = fold_layer_norm(keras.Model(x, norm("norm")(y))).entries
    assert_stays(entry, "attention/attention_output", "is quantized")


@pytest.mark.parametrize(
    "change", [lambda dense: dense.enable_lora(2), lambda dense: dense.quantize("int8")]
)
def test_maps_with_lora_weights_or_quantized_ones_inside_a_layer(change):
    x = keras.Input((4, 6))
    attention = layers.MultiHeadAttention(2, 3, name="attention")
    model = with_drawn_weights(keras.Model(x, norm("norm")(attention(x, x))))
    change(attention.output_dense)
    [entry] = converted(fold_layer_norm, model)
    assert "attention/attention_output" in entry.reason
    assert entry.converted == (not attention.output_dense.quantization_mode)


@pytest.mark.filterwarnings("ignore:.*rms_scaling")
def test_rms_scaling_is_refused():
    x = keras.Input((4, 6))
    first = norm("first", scale=False, center=False, rms_scaling=True)
    report = fold(keras.Model(x, norm("norm")(first(dense()(x)))))
    assert not report["first"].converted
    assert not report["norm"].converted


def test_channels_first_is_refused():
    """Built and not run: a CPU has no such convolution."""
    x = keras.Input((3, 5, 5))
    y = layers.Conv2D(4, 1, data_format="channels_first", name="conv")(x)
    norms = [norm("over_channels", axis=1)(y), norm("over_columns")(y)]
    over_channels, over_columns = fold_layer_norm(keras.Model(x, norms)).entries
    assert_stays(over_channels, "axis [1]")
    assert_stays(over_columns, "conv also goes to over_channels")
    conv = layers.Conv2D(4, 1, data_format="channels_first", name="conv")
    [entry] = fold_layer_norm(keras.Model(x, norm("norm")(conv(x)))).entries
    assert_stays(entry, "the output of conv", "(BiasAdd)")


@pytest.mark.slow
def test_dropout_in_a_residual_stream_is_for_inference_only():
    model = pre_ln_transformer(dropout=0.1)
    report = fold(model)
    assert [entry.converted for entry in report.values()] == [True, False, False, False, False]
    assert_stays(report["last"], "drops entries")
    report = converted(fold_layer_norm, model, for_inference=True)
    assert all(entry.converted for entry in report)


def test_dropout_that_a_graph_switches_on_counts_at_inference():
    x = keras.Input((6,), name="x")
    dropped = layers.Dropout(0.5, name="drop")(dense("dense")(x), training=True)
    [entry] = fold_layer_norm(keras.Model(x, norm("norm")(dropped)), for_inference=True).entries
    assert_stays(entry, "drop drops entries")


def test_part_of_a_model_is_folded_where_the_rest_cannot_be():
    x = keras.Input((4, 6), name="x")
    y = norm("norm_0")(dense("dense_0")(x))
    z = norm("norm_1")(layers.Dropout(0.3, name="drop")(dense("dense_1")(y)))
    model = with_drawn_weights(keras.Model(x, z))
    before = [w.numpy() for name in ("dense_1", "norm_1") for w in model.get_layer(name).weights]
    report = fold(model)
    assert report["norm_0"] == Conversion("norm_0", True, "centring folded into dense_0")
    assert_stays(report["norm_1"], "drop drops entries")
    after = [w for name in ("dense_1", "norm_1") for w in model.get_layer(name).weights]
    for a, b in zip(after, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_convnext_is_folded_only_where_its_stem_ends():
    model = keras.applications.ConvNeXtTiny(
        weights=None, include_top=False, input_shape=(32, 32, 3)
    )
    report = fold_layer_norm(model, for_inference=True).entries
    stay = [entry for entry in report if not entry.converted]
    in_blocks = [entry for entry in stay if entry.name.endswith("_layernorm")]
    assert (len(report), len(stay), len(in_blocks)) == (23, 22, 18)
    for entry in in_blocks:
        assert_stays(entry, entry.name.replace("_layernorm", "_depthwise_conv has groups"))
    for entry in stay:
        assert entry in in_blocks or "also goes to convnext_tiny" in entry.reason


@pytest.mark.parametrize("weight", ["recurrent", "bias"])
def test_constraints_on_what_is_centred_in_a_cell_are_refused(weight):
    gru = RMSNormGRU(
        4, **{f"{weight}_constraint": "max_norm"}, normalize_bias=True, name="gru", **LN
    )
    x = keras.Input((5, 3))
    assert_stays(fold(keras.Model(x, gru(x)))["gru/cell"], f"{weight}_constraint")


class Logits(layers.Layer):
    """Multiplies by the transpose of an embedding."""

    def __init__(self, embedding, **kwargs):
        super().__init__(**kwargs)
        self.embedding = embedding

    def call(self, x):
        return keras.ops.matmul(x, keras.ops.transpose(self.embedding.embeddings))


@pytest.mark.parametrize("read", ["layer", "code"])
def test_an_embedding_whose_weights_another_layer_reads_keeps_them(read):
    words = layers.Embedding(7, 6, name="words")
    tokens = keras.Input((5,), dtype="int32")
    table = words.embeddings if words.built else words
    readers = {
        "layer": Logits(words, name="logits"),
        "code": layers.Lambda(
            lambda x: x @ keras.ops.transpose(table.embeddings), (5, 7), name="logits"
        ),
    }
    model = with_drawn_weights(keras.Model(tokens, readers[read](norm("norm")(words(tokens)))))
    before = words.embeddings.numpy()
    [entry] = converted(fold_layer_norm, model)
    assert_stays(entry, "words also goes to logits")
    np.testing.assert_array_equal(words.embeddings, before)


@pytest.mark.parametrize("sees", ["bool", "int32", "norm"])
def test_a_stream_stays_if_something_casts_it_to_integers_or_normalizes_another_axis(sees):
    """Random inputs alone would not show a cast: whether an entry is 0 changes for few."""
    x = keras.Input((4, 6))
    stream = dense()(x)
    other = {"norm": norm("other")}.get(sees) or layers.Lambda(
        lambda x: keras.ops.cast(keras.ops.cast(x, sees), "float32"), name="other"
    )
    report = fold(keras.Model(x, [norm("norm")(stream), other(layers.Permute((2, 1))(stream))]))
    assert_stays(report["norm"], "dense also goes to other")


def test_a_layer_that_is_called_twice_stays_one():
    x = keras.Input((4, 6))
    shared = dense("shared")
    inner = keras.Model(x, layers.Activation("tanh", name="tanh")(shared(x)), name="inner")
    [entry] = converted(
        fold_layer_norm, with_drawn_weights(keras.Model(x, inner(norm("norm")(shared(x)))))
    )
    assert_stays(entry, "shared also goes to inner/tanh")
