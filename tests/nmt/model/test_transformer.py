"""The Transformer: its equations, and what padding, dropout and step-by-step decoding may and may
not change.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

from nmt.config import Config
from nmt.model.transformer import FIRST_WORD, Transformer
from tests.nmt.model.blocks import assert_same_gradients, layer_norm
from tests.nmt.model.steps import (
    assert_hypotheses_share_a_memory,
    assert_steps_equal_the_whole_sentence,
)

SOURCE = np.array([[2, 3, 0], [4, 0, 0]])
SOURCE_MASK = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
TARGET = np.array([[3, 2, 5, 0], [5, 0, 0, 0]])
TARGET_MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)
PAIRS = (SOURCE, SOURCE_MASK, TARGET, TARGET_MASK)
UNITS = 8
HEADS = 2
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
}
MARIAN = {  # the parts of Marian's Transformer
    "transformer_activation": "swish",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    "transformer_positions": "paper",
    "transformer_padding": 1,
}
RATES = {  # name -> option
    "embeddings": "transformer_dropout_embeddings",
    "residual": "transformer_dropout_residual",
    "relu": "transformer_dropout_relu",
    "attention": "transformer_dropout_attn",
    "heads": "transformer_drophead",
}


def make(kind="layernorm", position="pre", rate=None, depths=(1, 2), **options):
    """Makes a small model of 6 words a side with random weights; half of what one of `RATES` names
    is dropped.
    """
    config = Config(
        state_size=UNITS,
        layer_normalization_type=kind,
        transformer_ffn_hidden_size=12,
        transformer_num_heads=HEADS,
        transformer_norm_position=position,
        transformer_enc_depth=depths[0],
        transformer_dec_depth=depths[1],
        **{option: 0.5 if name == rate else 0.0 for name, option in RATES.items()},
        **options,
    )
    model = Transformer(config, 6, 6)
    rng = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(rng.normal(0.3, 0.5, size=weight.shape))
    return model


@pytest.fixture(params=["pre", "post"])
def model(kind, request):
    return make(kind, request.param)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Transcription:
    """The equations, sentence by sentence, in NumPy float64."""

    def __init__(self, model, position, activation="relu", waves=UNITS // 2 - 1, first=FIRST_WORD):
        self.weights = {weight.path: weight.numpy().astype(float) for weight in model.weights}
        self.is_pre = position == "pre"
        self.activation = ACTIVATIONS[activation]
        self.waves = waves
        self.first = first
        self.shares = {}  # what each attention was, the mean of its heads

    def norm(self, x, name):
        return layer_norm(x, self.weights, name)

    def residual(self, x, name, function):
        if self.is_pre:
            return x + function(self.norm(x, f"{name}_residual/norm"))
        return self.norm(x + function(x), f"{name}_residual/norm")

    def attention(self, x, memory, name, causal=False):
        q, k, v = (
            y @ self.weights[f"{name}/{part}"] + self.weights.get(f"{name}/{part}_bias", 0)
            for y, part in ((x, "queries"), (memory, "keys"), (memory, "values"))
        )
        found = []
        shares = []
        for head in np.split(np.arange(UNITS), HEADS):
            scores = q[:, head] @ k[:, head].T / np.sqrt(UNITS / HEADS)
            hidden = np.triu(np.full(scores.shape, -np.inf), 1) if causal else 0.0
            shares.append(softmax(scores + hidden))
            found.append(shares[-1] @ v[:, head])
        self.shares[name] = np.mean(shares, 0)
        return np.concatenate(found, -1) @ self.weights[f"{name}/output"] + self.weights.get(
            f"{name}/output_bias", 0
        )

    def feed_forward(self, x, name):
        w = {
            part: self.weights[f"{name}/{part}"]
            for part in ("inner_kernel", "inner_bias", "outer_kernel", "outer_bias")
        }
        return (
            self.activation(x @ w["inner_kernel"] + w["inner_bias"]) @ w["outer_kernel"]
            + w["outer_bias"]
        )

    def embed(self, ids, side):
        t = np.arange(len(ids))[:, None]
        i = np.arange(UNITS // 2)
        angles = t * 10000.0 ** (-i / self.waves)
        table = self.weights[f"{side}/embedding/embeddings"]
        return table[ids] * np.sqrt(UNITS) + np.concatenate([np.sin(angles), np.cos(angles)], -1)

    def final(self, x, side):
        return self.norm(x, f"{side}/final_norm") if self.is_pre else x

    def logits(self, source, target):
        layer = "encoder/layer_1"
        x = self.embed(source, "encoder")
        x = self.residual(
            x, f"{layer}/self_attention", lambda y: self.attention(y, y, f"{layer}/self_attention")
        )
        x = self.residual(
            x, f"{layer}/feed_forward", lambda y: self.feed_forward(y, f"{layer}/feed_forward")
        )
        context = self.final(x, "encoder")
        x = self.embed([self.first, *target[:-1]], "decoder")
        for layer in ("decoder/layer_1", "decoder/layer_2"):
            own, cross, feed = (
                f"{layer}/{name}" for name in ("self_attention", "cross_attention", "feed_forward")
            )
            x = self.residual(x, own, lambda y, name=own: self.attention(y, y, name, causal=True))
            x = self.residual(x, cross, lambda y, name=cross: self.attention(y, context, name))
            x = self.residual(x, feed, lambda y, name=feed: self.feed_forward(y, name))
        bias = self.weights.get("decoder/output_bias", 0)
        return self.final(x, "decoder") @ self.weights["decoder/output_kernel"].T + bias


@pytest.mark.parametrize("position", ["pre", "post"])
def test_the_equations(position):
    model = make("layernorm", position)
    found = model(SOURCE, SOURCE_MASK, TARGET).numpy()
    transcription = Transcription(model, position)
    for row in range(2):
        source = SOURCE[row][SOURCE_MASK[row] == 1]
        np.testing.assert_allclose(
            found[row], transcription.logits(source, TARGET[row]), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("position", ["pre", "post"])
def test_the_attention_of_a_layer_is_the_mean_of_its_heads(position):
    """By default of the last but one. Padding of the source gets none."""
    model = make("layernorm", position)
    transcription = Transcription(model, position)
    transcription.logits(SOURCE[1, :2], TARGET[1])
    for given, layer in (({"layer": 1}, 1), ({"layer": 2}, 2), ({}, 1)):
        found = model.attention(SOURCE, SOURCE_MASK, TARGET, **given).numpy()[1]
        expected = transcription.shares[f"decoder/layer_{layer}/cross_attention"]
        np.testing.assert_allclose(found[:, :2], expected, rtol=1e-4)
        assert not found[:, 2].any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_equations_with_other_parts(activation):
    """Biases, another activation, the frequencies of the paper, and padding at first."""
    model = make("layernorm", "post", **(MARIAN | {"transformer_activation": activation}))
    assert model.first_word == 6
    transcription = Transcription(model, "post", activation, UNITS // 2, first=6)
    found = model(SOURCE, SOURCE_MASK, TARGET).numpy()
    np.testing.assert_allclose(
        found[1], transcription.logits(SOURCE[1, :2], TARGET[1]), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("biases", "rows"), [(True, 1), (False, 1), (True, 3)])
def test_padding_is_never_chosen_and_counts_in_the_normalizer(biases, rows):
    model = make(**(MARIAN | {"transformer_output_bias": biases, "transformer_padding": rows}))
    assert model.first_word == 5 + rows
    logits = model(SOURCE, SOURCE_MASK, TARGET)[:, 0].numpy()
    first = np.array([model.first_word] * 2)
    found, *_ = model.make_step()(first, *model.encode(SOURCE, SOURCE_MASK))
    np.testing.assert_allclose(found.logits, logits[:, :6], rtol=1e-4, atol=1e-4)
    assert logits.shape[1] == 6 + rows
    np.testing.assert_allclose(found.normalizers, np.log(np.exp(logits).sum(-1)), rtol=1e-4)


def test_a_large_epsilon_makes_norms_smaller():
    near = make("layernorm", "post", transformer_norm_epsilon=1e-9)
    far = make("layernorm", "post", transformer_norm_epsilon=1.0)
    norms = [each.encoder.stack[0].feed_forward_residual.norm for each in (near, far)]
    for norm in norms:
        norm.beta.assign(tf.zeros([UNITS]))
    x = np.random.default_rng(1).normal(size=[3, UNITS]).astype(np.float32)
    variance = x.var(-1, keepdims=True)
    np.testing.assert_allclose(
        norms[1](x), norms[0](x) * np.sqrt(variance / (variance + 1)), rtol=1e-5
    )


@pytest.mark.parametrize("rows", [1, 2])
def test_padding_is_zeros_at_first_and_is_not_trained(rows):
    options = {"tie_decoder_embeddings": True, "tie_encoder_decoder_embeddings": True}
    options |= MARIAN | {"transformer_padding": rows}
    model = Transformer(Config(state_size=UNITS, transformer_num_heads=HEADS, **options), 6, 6)
    assert not model.encoder.embedding.table.numpy()[6:].any()
    with tf.GradientTape() as tape:
        cost = model.total_cost(*PAIRS, label_smoothing=0.1)
    for weight, gradient in zip(
        model.weights, tape.gradient(cost, [each.value for each in model.weights]), strict=True
    ):
        if weight.path.endswith(("embeddings", "decoder/output_bias")):
            assert not gradient.numpy()[6:].any()
            assert gradient.numpy()[:6].any(tuple(range(1, len(gradient.shape)))).all()


def test_the_source_embedding_has_no_padding():
    """Where it is a table of its own, all its words are trained."""
    model = make(**MARIAN)
    with tf.GradientTape() as tape:
        cost = model.total_cost(
            np.array([[5, 0]]), np.ones([1, 2], np.float32), TARGET[:1], TARGET_MASK[:1]
        )
    assert tape.gradient(cost, model.encoder.embedding.table.value).numpy()[5].any()


@pytest.mark.parametrize("parts", [{}, MARIAN])
def test_decoding_step_by_step_with_other_parts(parts):
    model = make(**(parts | {"transformer_padding": 0}))
    assert_steps_equal_the_whole_sentence(model, SOURCE, SOURCE_MASK, TARGET, 1e-4)


def test_decoding_step_by_step_equals_the_whole_sentence(model):
    assert_steps_equal_the_whole_sentence(model, SOURCE, SOURCE_MASK, TARGET, 1e-4)


def test_the_state_has_a_row_for_each_hypothesis(model):
    """Exchanging the rows of a sentence exchanges what follows; a row taken twice is followed by
    the same twice.
    """
    state, memory = model.encode(SOURCE[:1], SOURCE_MASK[:1])
    step = model.make_step()
    state = tf.repeat(state, 2, axis=0)
    _, state, memory = step(np.array([FIRST_WORD, FIRST_WORD]), state, memory)
    straight, state, memory = step(np.array([2, 3]), state, memory)
    expected, *_ = step(np.array([4, 4]), state, memory)
    crossed, *_ = step(np.array([4, 4]), tf.gather(state, [1, 0]), memory)
    np.testing.assert_allclose(crossed.logits, expected.logits.numpy()[::-1], rtol=1e-5, atol=1e-5)
    twice, *_ = step(np.array([4, 4]), tf.gather(state, [1, 1]), memory)
    np.testing.assert_allclose(twice.logits, expected.logits.numpy()[[1, 1]], rtol=1e-5, atol=1e-5)
    assert not np.allclose(straight.logits[0], straight.logits[1])


def test_hypotheses_of_a_sentence_share_its_memory(model):
    assert_hypotheses_share_a_memory(model, SOURCE, SOURCE_MASK)


def test_padding_changes_nothing(model):
    wider = [np.pad(x, [(0, 0), (0, 3)]) for x in PAIRS]
    np.testing.assert_allclose(model.costs(*wider), model.costs(*PAIRS), rtol=1e-5)


def test_a_filler_row_has_no_cost(model):
    filled = [np.pad(x, [(0, 1), (0, 0)]) for x in PAIRS]
    filled[1][2, 0] = 1  # nothing but its end
    np.testing.assert_allclose(model.costs(*filled), [*model.costs(*PAIRS), 0.0], rtol=1e-5)


def test_every_weight_of_a_transformer_gets_a_gradient(model):
    for weight in model.weights:
        weight.assign(0.2 * weight)  # so that no softmax saturates
    with tf.GradientTape() as tape:
        total = model.total_cost(*PAIRS)
    gradients = zip(
        model.trainable_variables, tape.gradient(total, model.trainable_variables), strict=True
    )
    assert not [weight.path for weight, gradient in gradients if not 0 < tf.norm(gradient) < np.inf]


@pytest.mark.parametrize(("tied", "shared"), [(False, False), (True, False), (True, True)])
def test_the_total_cost_is_the_sum_of_costs_and_has_its_gradient(tied, shared):
    model = make(tie_decoder_embeddings=tied, tie_encoder_decoder_embeddings=shared)
    with tf.GradientTape(persistent=True) as tape:
        total = model.total_cost(*PAIRS)
        expected = tf.reduce_sum(model.costs(*PAIRS))
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    assert_same_gradients(tape, total, expected, model, rtol=1e-3, atol=1e-4)


def test_label_smoothing_is_that_of_nematus():
    """The right word keeps 1 - e, the others share e; a prediction equal to the smoothed labels
    costs nothing.
    """
    model = make()
    smoothing = 0.1
    wanted = np.where(np.eye(6)[TARGET] == 1, 1 - smoothing, smoothing / 5)
    with tf.GradientTape(persistent=True) as tape:
        total = model.total_cost(*PAIRS, label_smoothing=smoothing)
        log_p = tf.nn.log_softmax(model(SOURCE, SOURCE_MASK, TARGET))
        expected = tf.reduce_sum(wanted * (np.log(wanted) - log_p) * TARGET_MASK[..., np.newaxis])
    np.testing.assert_allclose(total, expected, rtol=1e-4)
    assert_same_gradients(tape, total, expected, model, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("embeddings", {2 * 3 * 8: 1, 2 * 4 * 8: 1}),
        ("residual", {2 * 3 * 8: 2, 2 * 4 * 8: 2 * 3}),
        ("relu", {2 * 3 * 8: 1, 2 * 4 * 8: 2}),  # of the 8 inputs, not of the 12 inner units
        ("attention", {2 * 2 * 3 * 3: 1, 2 * 2 * 4 * 4: 2, 2 * 2 * 4 * 3: 2}),
        ("heads", {2 * 2: 1 + 2 * 2}),
    ],
)
def test_dropout_masks_are_those_of_nematus(rate, expected, drawn_masks):
    """The encoder has one layer and the decoder two."""
    model = make(rate=rate)
    model.total_cost(*PAIRS, dropout_seed=tf.constant([1, 2]))
    assert drawn_masks == expected


@pytest.mark.parametrize(
    "rate",
    [
        rate if rate in ("residual", "heads") else pytest.param(rate, marks=pytest.mark.slow)
        for rate in RATES
    ],
)
def test_every_rate_of_dropout_has_an_effect_that_the_seed_decides(rate):
    model = make(rate=rate, depths=(1, 1))
    none, *seeded = (
        float(model.total_cost(*PAIRS, dropout_seed=seed))
        for seed in (None, *tf.constant([[1, 2], [1, 2], [1, 3], [1, 4]]))
    )
    assert seeded[0] == seeded[1]
    assert len({none, *seeded}) > 2


def test_tied_embeddings_are_one_weight():
    untied, tied, shared = (
        make(tie_decoder_embeddings=tied, tie_encoder_decoder_embeddings=shared)
        for tied, shared in ((False, False), (True, False), (True, True))
    )
    assert len(untied.variables) - 2 == len(tied.variables) - 1 == len(shared.variables)
    before = shared(SOURCE, SOURCE_MASK, TARGET).numpy()
    shared.encoder.embedding.table.assign(-shared.encoder.embedding.table)
    assert (shared(SOURCE, SOURCE_MASK, TARGET).numpy() != before).all()


@pytest.mark.parametrize(("rounded", "error"), [("bfloat16", 0.02), ("float16", 0.003)])
def test_rounded_factors_give_a_near_cost(rounded, error):
    costs = [
        float(make(dtype=dtype).total_cost(*PAIRS)) for dtype in ("float32", f"mixed_{rounded}")
    ]
    np.testing.assert_allclose(costs[1], costs[0], rtol=error)
    assert costs[0] != costs[1]
