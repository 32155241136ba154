"""Conversion: what is folded gives the same outputs, what cannot be folded stays and says why."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormGRUCell,
    RMSNormLSTM,
    RMSNormSimpleRNNCell,
    fold_layer_norm,
    replace_layer_norm,
)
from rmsnorm_tf.convert import Folding
from tests import reference
from tests.cases import assert_close

layers = keras.layers
# Relative to the largest output.
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "mixed_bfloat16": 2e-2, "mixed_float16": 3e-3}


@pytest.fixture(params=["float32", "float64"])
def policy(request):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


def with_drawn_weights(model, seed=0):
    """Gives every weight numbers with a mean that is not zero, so that nothing is centred by chance."""
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0.3, 0.7, size=w.shape) for w in model.weights])
    return model


def draw_inputs(model, batch=3, seed=1):
    rng = np.random.default_rng(seed)
    return [
        rng.integers(1, 5, (batch, *x.shape[1:])) if "int" in x.dtype else rng.normal(size=(batch, *x.shape[1:]))
        for x in model.inputs
    ]


def assert_same_outputs(model, folded, policy=None, training=False):
    policy = policy or keras.config.dtype_policy().name
    inputs = draw_inputs(model)
    inputs = inputs[0] if len(inputs) == 1 else inputs
    expected, actual = (keras.tree.flatten(m(inputs, training=training)) for m in (model, folded))
    for a, e in zip(actual, expected, strict=True):
        a, e = (np.asarray(keras.ops.cast(t, "float64")) for t in (a, e))
        np.testing.assert_allclose(a, e, rtol=0, atol=TOLERANCE[policy] * np.max(np.abs(e)))


def fold(model, policy=None):
    """Folds a model with drawn weights, compares outputs, and returns the report as a dictionary."""
    with_drawn_weights(model)
    before = model.get_weights()
    folded, report = fold_layer_norm(model)
    assert_same_outputs(model, folded, policy)
    for kept, w in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(kept, w)
    named = {layer.name: layer for layer in folded.layers}
    for entry in report:
        if entry.name in named and isinstance(named[entry.name], (RMSNormalization, layers.LayerNormalization)):
            assert isinstance(named[entry.name], RMSNormalization) == entry.folded
    assert len({entry.name for entry in report}) == len(report)
    return folded, {entry.name: entry for entry in report}


def norm(name, **arguments):
    return layers.LayerNormalization(name=name, **arguments)


def feed_forward(x, number, units=6):
    y = norm(f"norm_{number}b")(x)
    y = layers.Dense(10, "gelu", name=f"hidden_{number}")(y)
    return x + layers.Dense(units, name=f"out_{number}")(y)


def pre_ln_transformer(dropout=0.0, blocks=2):
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    positions = keras.Input((5,), dtype="int32", name="positions")
    x = layers.Embedding(7, 6, name="words")(tokens) + layers.Embedding(5, 6, name="places")(positions)
    for i in range(blocks):
        y = norm(f"norm_{i}a")(x)
        y = layers.MultiHeadAttention(2, 3, name=f"attention_{i}")(y, y)
        x = layers.Add(name=f"sum_{i}")([x, layers.Dropout(dropout, name=f"dropout_{i}")(y)])
        x = feed_forward(x, i)
    return keras.Model([tokens, positions], layers.Dense(3, name="head")(norm("last")(x)))


def test_pre_ln_transformer(policy):
    folded, report = fold(pre_ln_transformer())
    assert all(entry.folded for entry in report.values())
    assert list(report) == ["norm_0a", "norm_0b", "norm_1a", "norm_1b", "last"]
    assert report["norm_0a"].reason == "centring folded into words, places"
    assert report["last"].reason == ("centring folded into words, places, attention_0, out_0, attention_1, out_1")
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
    assert all(entry.folded for entry in report.values())


def test_dense_stack(policy):
    model = keras.Sequential([keras.Input((4,), name="x")], name="stack")
    for i, units in enumerate((8, 5)):
        model.add(layers.Dense(units, use_bias=i == 0, name=f"dense_{i}"))
        model.add(norm(f"norm_{i}", epsilon=10.0**-i, scale=i == 0, center=i == 1))
        model.add(layers.ReLU())
    folded, report = fold(model)
    assert type(folded) is keras.Sequential
    assert report["norm_0"] == Folding("norm_0", True, "centring folded into dense_0")
    assert report["norm_1"] == Folding("norm_1", True, "centring folded into dense_1")
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
    assert [entry.folded for entry in report.values()] == [True, True]


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes"),
    [
        ("abc,cd->abd", (None, 4), "d"),
        ("abc,dc->abd", (None, 4), None),
        ("...c,cd->...d", 4, "d"),
        ("abc,cde->abde", (None, 2, 4), "d"),
        ("abc,cde->abed", (None, 2, 4), "ed"),
    ],
)
def test_einsum_dense(equation, output_shape, bias_axes, policy):
    x = keras.Input((5, 3))
    y = layers.EinsumDense(equation, output_shape, bias_axes=bias_axes, name="einsum")(x)
    _, report = fold(keras.Model(x, norm("norm")(y)))
    assert report["norm"].folded


def test_grouped_query_attention(policy):
    x = keras.Input((5, 6))
    y = layers.GroupQueryAttention(3, 4, 2, name="attention")(x, x)
    _, report = fold(keras.Model(x, norm("norm")(y)))
    assert report["norm"].reason == "centring folded into attention"


def test_maps_and_norms_in_several_places(policy):
    a, b = keras.Input((4,)), keras.Input((4,))
    dense, shared = layers.Dense(5, name="dense"), norm("shared")
    _, report = fold(keras.Model([a, b], [shared(dense(a)), shared(dense(b)), norm("own")(dense(a) + dense(b))]))
    assert all(entry.folded for entry in report.values())


def test_post_ln_without_gain(policy):
    """Offsets can be centred too, and without them there is nothing to centre."""
    x = keras.Input((4, 6))
    y = norm("first", scale=False)(layers.Dense(6, name="dense")(x))
    y = norm("second", scale=False, center=False)(y)
    z = norm("third")(layers.Add()([y, layers.Dense(6, name="branch")(y)]))
    _, report = fold(keras.Model(x, z))
    assert report["second"].reason == "centring folded into first"
    assert report["third"].reason == "centring folded into branch"


def tagger(recurrent):
    words = keras.Input((5,), dtype="int32")
    x = recurrent(layers.Embedding(7, 4, mask_zero=True)(words))
    return keras.Model(words, layers.Dense(3, name="tags")(norm("norm")(layers.Dense(6, name="dense")(x))))


LN = {"normalization": "layer", "return_sequences": True}
RECURRENT = {
    "gru": (lambda: RMSNormGRU(4, name="gru", **LN), ["gru/cell"]),
    "reset-before": (lambda: RMSNormGRU(4, reset_after=False, name="gru", **LN), ["gru/cell"]),
    "bias-inside": (lambda: RMSNormGRU(4, normalize_bias=True, name="gru", **LN), ["gru/cell"]),
    "no-bias": (lambda: RMSNormGRU(4, normalize_bias=True, use_bias=False, name="gru", **LN), ["gru/cell"]),
    "bidirectional": (
        lambda: layers.Bidirectional(RMSNormGRU(4, name="gru", **LN), name="both"),
        ["both/forward_gru/cell", "both/backward_gru/cell"],
    ),
    "stack": (
        lambda: layers.RNN(
            [
                RMSNormGRUCell(4, normalization="layer", name="first"),
                layers.GRUCell(3),
                RMSNormSimpleRNNCell(4, normalization="layer", normalize_bias=True, name="second"),
            ],
            return_sequences=True,
            name="stack",
        ),
        ["stack/first", "stack/second"],
    ),
}


@pytest.mark.parametrize(("make", "names"), RECURRENT.values(), ids=RECURRENT)
def test_ln_gru_tagger(make, names, policy):
    folded, report = fold(tagger(make()))
    assert list(report) == [*names, "norm"]
    assert all(entry.folded for entry in report.values())
    assert report[names[0]].reason == "centring folded into its kernels"
    assert not any(isinstance(t, layers.LayerNormalization) for t in tf.train.TrackableView(folded).descendants())


def test_a_cell_that_has_rms_or_nothing_inside_is_not_reported():
    _, report = fold(tagger(RMSNormGRU(4, return_sequences=True)))
    assert list(report) == ["norm"]


def test_a_lstm_stays_beside_cells_that_do_not():
    lstm = RMSNormLSTM(4, name="lstm", **LN)
    x = keras.Input((5, 3))
    folded, report = fold(keras.Model(x, RMSNormGRU(4, name="gru", **LN)(lstm(x))))
    assert report["gru/cell"].folded
    assert not report["lstm/cell"].folded
    assert "cell state, which no linear map makes" in report["lstm/cell"].reason
    assert folded.get_layer("lstm").cell.normalization == "layer"


class MyNorm(layers.LayerNormalization):
    pass


@keras.saving.register_keras_serializable(package="tests")
class Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense, self.norm = layers.Dense(6), layers.LayerNormalization(name="hidden_norm")

    def build(self, shape):
        self.dense.build(shape)
        self.norm.build((*shape[:-1], 6))

    def call(self, x):
        return self.norm(self.dense(x))


def dense(name="dense", units=6, **arguments):
    return layers.Dense(units, name=name, **arguments)


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


def with_scores(x):
    y, scores = layers.MultiHeadAttention(2, 3, name="attention")(x, x, return_attention_scores=True)
    return [norm("on_scores")(scores), norm("norm")(y)]


REFUSED = {
    "post-LN": (with_post_ln, "first multiplies its output by a gain"),
    "dropout": (after(dense(), layers.Dropout(0.1, name="drop")), "drop drops entries in training"),
    "activation inside": (after(dense(activation="tanh")), "dense has the activation tanh"),
    "activation between": (
        after(dense(), layers.Activation("relu", name="relu")),
        "relu (Activation) is not known to be an affine map",
    ),
    "an unknown layer": (
        after(dense(), layers.Lambda(lambda x: x, name="own")),
        "own (Lambda) is not known to be an affine map",
    ),
    "used elsewhere": (with_use_elsewhere, "the output of dense also goes to elsewhere"),
    "exposed": (with_exposed_stream, "the output of dense is an output of the model"),
    "attention on the stream": (with_attention_on_the_stream, "the output of dense also goes to attention"),
    "shared map": (with_shared_map, "the output of shared also goes to elsewhere"),
    "shared norm": (with_shared_norm, "relu has the activation relu"),
    "input": (after(), "x is an input of the model"),
    "constraint": (after(dense(kernel_constraint="max_norm")), "dense has a constraint on its kernel"),
    "bias constraint": (after(dense(bias_constraint="non_neg")), "dense has a constraint on its bias"),
    "groups": (after(layers.Conv1D(6, 1, groups=3, name="conv")), "conv has groups"),
    "diagonal": (
        after(layers.EinsumDense("abc,c->abc", (None, 6), name="einsum")),
        "einsum has no axis in its kernel for the last axis of its output",
    ),
    "constant": (lambda x: norm("norm")(dense()(x) + 1.0), " adds a constant, or tensors of unlike sizes"),
    "broadcast": (
        lambda x: norm("norm")(dense()(x) + dense("one", units=1)(x)),
        " adds a constant, or tensors of unlike sizes",
    ),
    "another axis": (lambda x: norm("norm", axis=1)(dense()(x)), "norm normalizes over axis [1]"),
    "two axes": (lambda x: norm("norm", axis=(1, 2))(dense()(x)), "norm normalizes over axis [1, 2]"),
    "post-LN over another axis": (
        lambda x: norm("norm")(norm("first", axis=1, scale=False, center=False)(x)),
        "first normalizes over axis [1]",
    ),
    "no epsilon": (lambda x: norm("norm", epsilon=0.0)(dense()(x)), "norm has epsilon=0.0"),
    "a subclass": (lambda x: MyNorm(name="norm")(dense()(x)), "norm (MyNorm) may compute something else"),
    "scores": (lambda x: with_scores(x)[0], "attention has more than one output"),
}


@pytest.mark.filterwarnings("ignore:.*Lambda")
@pytest.mark.parametrize(("outputs", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(outputs, reason):
    x = keras.Input((4, 6), name="x")
    _, report = fold(keras.Model(x, outputs(x)))
    [entry] = [entry for name, entry in report.items() if name in ("norm", "on_scores")]
    assert not entry.folded
    assert reason in entry.reason


def test_a_map_with_lora_weights_is_refused():
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm")])
    model.get_layer("dense").enable_lora(2)
    _, report = fold_layer_norm(model)
    assert report == [Folding("norm", False, "dense is quantized or has LoRA weights")]


@pytest.mark.filterwarnings("ignore:.*rms_scaling")
def test_rms_scaling_is_refused():
    x = keras.Input((4, 6))
    first = norm("first", scale=False, center=False, rms_scaling=True)
    _, report = fold(keras.Model(x, norm("norm")(first(dense()(x)))))
    assert not report["first"].folded
    assert not report["norm"].folded


def test_channels_first_is_refused():
    """Built and not run: a CPU has no such convolution."""
    x = keras.Input((3, 5, 5))
    y = layers.Conv2D(4, 1, data_format="channels_first", name="conv")(x)
    _, report = fold_layer_norm(keras.Model(x, [norm("over_channels", axis=1)(y), norm("over_columns")(y)]))
    assert [entry.folded for entry in report] == [False, False]
    assert "over_channels normalizes over axis [1]" in report[0].reason
    conv = layers.Conv2D(4, 1, data_format="channels_first", name="conv")
    _, [entry] = fold_layer_norm(keras.Model(x, norm("norm")(conv(x))))
    assert entry.reason == "conv has its channels first, not on the last axis"


def test_a_residual_stream_with_dropout_is_refused_as_a_whole():
    _, report = fold(pre_ln_transformer(dropout=0.1))
    assert not report["last"].folded
    assert "drops entries in training" in report["last"].reason
    assert not any(entry.folded for entry in report.values())


def test_part_of_a_model_is_folded_where_the_rest_cannot_be():
    x = keras.Input((4, 6), name="x")
    y = norm("norm_0")(dense("dense_0")(x))
    z = norm("norm_1")(layers.Dropout(0.3, name="drop")(dense("dense_1")(y)))
    model = keras.Model(x, z)
    folded, report = fold(model)
    assert report == {
        "norm_0": Folding("norm_0", True, "centring folded into dense_0"),
        "norm_1": Folding("norm_1", False, "drop drops entries in training, after which the mean is no longer zero"),
    }
    for name in ("dense_1", "norm_1"):
        for a, b in zip(folded.get_layer(name).weights, model.get_layer(name).weights, strict=True):
            np.testing.assert_array_equal(a, b)


def test_models_inside_are_folded_by_themselves(policy):
    x = keras.Input((4, 6), name="x")
    inner = keras.Model(x, norm("after_dense")(dense()(norm("on_input")(x))), name="inner")
    outer = keras.Sequential([keras.Input((4, 6)), inner, keras.Sequential([dense(), norm("norm")], name="stack")])
    _, report = fold(outer)
    assert {name: entry.folded for name, entry in report.items()} == {
        "inner/on_input": False,
        "inner/after_dense": True,
        "stack/norm": True,
    }
    assert report["inner/on_input"].reason == "x is an input of the model"


def test_a_layer_norm_inside_another_layer_is_reported():
    x = keras.Input((4, 6))
    y = layers.TimeDistributed(norm("each"), name="wrapped")(Block(name="block")(x))
    _, report = fold(keras.Model(x, y))
    assert {name: entry.reason for name, entry in report.items()} == {
        "block/hidden_norm": "it is inside a Block, whose calls are not known",
        "wrapped/each": "it is inside a TimeDistributed, whose calls are not known",
    }


def test_constraints_on_a_cell_are_refused():
    gru = RMSNormGRU(4, recurrent_constraint="max_norm", name="gru", **LN)
    x = keras.Input((5, 3))
    _, report = fold(keras.Model(x, gru(x)))
    assert report["gru/cell"].reason == "it has a recurrent_constraint, which centring might break"


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        x = keras.Input((4, 6))
        y = norm("norm")(dense()(x))
        folded, report = fold(keras.Model(x, RMSNormGRU(4, name="gru", **LN)(y)), policy)
    finally:
        keras.config.set_dtype_policy(before)
    assert all(entry.folded for entry in report.values())
    assert folded.get_layer("norm").dtype_policy.name == policy


def test_frozen_layers_are_folded_and_stay_frozen():
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm"), dense("head")])
    model.get_layer("dense").trainable = model.get_layer("norm").trainable = False
    folded, report = fold(model)
    assert report["norm"].folded
    assert [layer.trainable for layer in folded.layers] == [False, False, True]


def test_masks_reach_the_layers_behind():
    model = tagger(layers.GRU(4, return_sequences=True))
    model = keras.Model(model.input, layers.GRU(3)(norm("again")(dense("more")(model.output))))
    folded, report = fold(model)
    assert all(entry.folded for entry in report.values())
    padded = np.array([[1, 2, 3, 0, 0]])
    np.testing.assert_allclose(folded(padded), model(padded), rtol=0, atol=1e-5)


def test_regularizers_initializers_and_constraints_go_along():
    arguments = {"gamma_regularizer": "l2", "beta_constraint": "non_neg", "beta_initializer": "ones"}
    model = keras.Sequential([keras.Input((6,)), dense(), norm("norm", **arguments)])
    layer = fold_layer_norm(model)[0].get_layer("norm")
    assert isinstance(layer.scale_regularizer, keras.regularizers.L2)
    assert isinstance(layer.offset_constraint, keras.constraints.NonNeg)
    assert isinstance(layer.offset_initializer, keras.initializers.Ones)


def test_adapted_layers_and_functions_go_along():
    x = keras.Input((4,), name="x")
    scaled = layers.Normalization()
    scaled.adapt(np.arange(12.0).reshape(3, 4))
    model = keras.Model(x, norm("norm")(dense()(layers.Lambda(lambda t: 2 * t)(scaled(x)))))
    folded, report = fold_layer_norm(model)
    assert report[0].folded
    assert_same_outputs(model, folded)


def test_a_folded_model_is_saved_and_trained(tmp_path):
    model = tagger(RMSNormGRU(4, name="gru", **LN))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    folded, _ = fold(model)
    folded.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_same_outputs(folded, loaded)
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
    for model in (Subclassed(), FunctionalSubclass(), dense()):
        with pytest.raises(TypeError) as caught:
            convert(model)
        assert type(model).__name__ in str(caught.value)
        assert "keras.Model(inputs, outputs)" in str(caught.value)
    with pytest.raises(ValueError, match=r"has no input yet. Give it a keras.Input as its first layer."):
        convert(keras.Sequential([dense()]))


def test_the_graph_of_a_functional_subclass_can_be_folded():
    model = FunctionalSubclass()
    assert fold(keras.Model(model.input, model.output))[1]["norm"].folded


def test_replace_swaps_every_layer_and_keeps_the_weights():
    x = keras.Input((4, 6), name="x")
    y = norm("on_input")(x)
    y = norm("over_two", axis=(1, 2))(layers.Activation("relu")(y))
    y = RMSNormLSTM(4, name="lstm", **LN)(y)
    y = layers.Bidirectional(RMSNormGRU(4, name="gru", **LN), name="both")(y)
    inner = keras.Sequential([keras.Input((4, 8)), norm("norm", center=False)], name="inner")
    model = with_drawn_weights(keras.Model(x, inner(y)))
    replaced = replace_layer_norm(model)
    for a, b in zip(replaced.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not any(isinstance(t, layers.LayerNormalization) for t in tf.train.TrackableView(replaced).descendants())
    assert replaced.get_layer("over_two").axis == (1, 2)
    assert replaced.get_layer("lstm").cell.normalization == "rms"


def test_replace_computes_rms_norm():
    model = with_drawn_weights(keras.Sequential([keras.Input((6,)), norm("norm", epsilon=1e-4)]))
    x = np.random.default_rng(0).normal(2.0, size=(3, 6)).astype(np.float32)
    gain, offset = model.get_weights()
    assert_close(replace_layer_norm(model)(x), reference.rms_norm(x, gain, offset, epsilon=1e-4))


def random_model(seed):
    """A directed graph of random layers, most of which keep the width, with one to three outputs."""
    rng = np.random.default_rng(seed)
    x = keras.Input((4, 6), name="x")
    tensors = [dense("first", use_bias=bool(rng.integers(2)))(x)]

    def pick():
        return tensors[rng.integers(max(0, len(tensors) - 3), len(tensors))]

    shared = [dense("shared_dense"), norm("shared_norm")]
    makers = [
        lambda i: dense(f"dense_{i}")(pick()),
        lambda i: dense(f"relu_{i}", activation="relu")(pick()),
        lambda i: norm(f"norm_{i}")(pick()),
        lambda i: norm(f"norm_{i}")(dense(f"dense_{i}")(pick())),
        lambda i: norm(f"norm_{i}", scale=False, center=bool(rng.integers(2)))(pick()),
        lambda i: pick() + pick(),
        lambda i: layers.Add(name=f"sum_{i}")([pick(), pick()]),
        lambda i: layers.Dropout(rng.choice([0.0, 0.2]), name=f"dropout_{i}")(pick()),
        lambda i: layers.Identity(name=f"identity_{i}")(pick()),
        lambda i: layers.Conv1D(6, 2, padding="same", name=f"conv_{i}")(pick()),
        lambda i: layers.MultiHeadAttention(2, 2, name=f"attention_{i}")(pick(), pick()),
        lambda i: shared[rng.integers(2)](pick()),
    ]
    for i in range(rng.integers(4, 12)):
        tensors.append(makers[rng.integers(len(makers))](i))
    outputs = [norm(f"last_{i}")(pick()) for i in range(rng.integers(1, 3))]
    return keras.Model(x, outputs + ([pick()] if rng.integers(4) == 0 else []))


@pytest.mark.parametrize("seed", range(25))
def test_random_models(seed, policy):
    fold(random_model(seed))


def test_random_models_are_of_both_kinds():
    entries = [entry for seed in range(25) for entry in fold_layer_norm(random_model(seed))[1]]
    folded = sum(entry.folded for entry in entries)
    assert folded > 20
    assert len(entries) - folded > 20
