"""The model: what padding, dropout and step-by-step decoding may and may not change."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.forward_pass import ForwardPass
from nmt.normalization import KINDS
from tests.nmt.model.blocks import assert_same_gradients
from tests.nmt.model.steps import (
    assert_hypotheses_share_a_memory,
    assert_steps_equal_the_whole_sentence,
)

SOURCE = np.array([[2, 3, 0], [4, 0, 0]])
SOURCE_MASK = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
TARGET = np.array([[3, 2, 5, 0], [5, 0, 0, 0]])
TARGET_MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)
PAIRS = (SOURCE, SOURCE_MASK, TARGET, TARGET_MASK)


DEEP = {
    "rnn_enc_depth": 2,
    "rnn_enc_transition_depth": 2,
    "rnn_dec_depth": 3,
    "rnn_dec_base_transition_depth": 3,
    "rnn_dec_high_transition_depth": 2,
    "rnn_dec_deep_context": True,
}
RATES = ("embedding", "hidden", "source", "target")


@pytest.fixture(params=[*KINDS, pytest.param("deep", marks=pytest.mark.slow)])
def model(make_model, request):
    model = make_model(**DEEP) if request.param == "deep" else make_model(request.param)
    rng = np.random.default_rng(3)
    # Far from the start, so that every weight matters; mostly of one sign, so that the few entries
    # of a partial statistic are not near zero, where dividing by them would magnify rounding.
    for weight in model.weights:
        weight.assign(rng.normal(0.5, 0.4, size=weight.shape))
    return model


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_costs_are_the_log_probabilities_of_words_and_end(model):
    found = log_softmax(model(SOURCE, SOURCE_MASK, TARGET).numpy())
    expected = [
        -sum(found[0, t, word] for t, word in enumerate([3, 2, 5, 0])),
        -sum(found[1, t, word] for t, word in enumerate([5, 0])),
    ]
    np.testing.assert_allclose(model.costs(*PAIRS), expected, rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.1, pytest.param(0.5, marks=pytest.mark.slow)])
def test_label_smoothing_is_cross_entropy_with_the_mixed_distribution(model, smoothing):
    wanted = ((1 - smoothing) * np.eye(6)[TARGET] + smoothing / 6) * TARGET_MASK[..., np.newaxis]
    with tf.GradientTape(persistent=True) as tape:
        total = model.total_cost(*PAIRS, label_smoothing=smoothing)
        expected = -tf.reduce_sum(wanted * tf.nn.log_softmax(model(SOURCE, SOURCE_MASK, TARGET)))
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    assert_same_gradients(tape, total, expected, model)


@pytest.mark.parametrize(("tied", "shared"), [(False, False), (True, False), (True, True)])
def test_the_total_cost_is_the_sum_of_costs_and_has_its_gradient(make_model, tied, shared):
    model = make_model(tie_decoder_embeddings=tied, tie_encoder_decoder_embeddings=shared)
    assert sum(weight.shape == (6, 5) for weight in model.weights) == 3 - tied - shared
    with tf.GradientTape(persistent=True) as tape:
        total = model.total_cost(*PAIRS)
        expected = tf.reduce_sum(model.costs(*PAIRS))
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    assert_same_gradients(tape, total, expected, model)


def test_the_context_is_zero_on_padding_alone(model):
    context = model.encoder(SOURCE, SOURCE_MASK, forward=ForwardPass()).numpy()
    for direction in np.split(context, 2, -1):
        np.testing.assert_array_equal(direction.any(-1), SOURCE_MASK == 1)


def test_padding_changes_nothing(model):
    wider = [np.pad(x, [(0, 0), (0, 3)]) for x in PAIRS]
    np.testing.assert_allclose(model.costs(*wider), model.costs(*PAIRS), rtol=1e-5)


def test_a_filler_row_has_no_cost_and_no_gradient(model):
    filled = [np.pad(x, [(0, 1), (0, 0)]) for x in PAIRS]
    filled[1][2, 0] = 1  # nothing but its end
    with tf.GradientTape(persistent=True) as tape:
        costs, expected = (tf.reduce_sum(model.costs(*pairs)) for pairs in (filled, PAIRS))
    np.testing.assert_allclose(costs, expected, rtol=1e-6)
    assert_same_gradients(tape, costs, expected, model)


def test_decoding_step_by_step_equals_the_whole_sentence(model):
    assert_steps_equal_the_whole_sentence(model, SOURCE, SOURCE_MASK, TARGET, 1e-5)


def test_hypotheses_of_a_sentence_share_its_memory(model):
    assert_hypotheses_share_a_memory(model, SOURCE, SOURCE_MASK)


def test_every_weight_gets_a_gradient(model):
    with tf.GradientTape() as tape:
        cost = tf.reduce_sum(model.costs(*PAIRS))
    gradients = tape.gradient(cost, [weight.value for weight in model.trainable_variables])
    without = [
        weight.path
        for weight, gradient in zip(model.trainable_variables, gradients, strict=True)
        if gradient is None
        or not np.isfinite(tf.convert_to_tensor(gradient)).all()
        or not tf.norm(gradient) > 0
    ]
    assert not without


def test_weight_paths_are_unique(model):
    paths = [weight.path for weight in model.weights]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize(
    "rate",
    [rate if rate == "hidden" else pytest.param(rate, marks=pytest.mark.slow) for rate in RATES],
)
def test_dropout_of_every_kind_acts_and_follows_its_seed(make_model, rate):
    """Half of something is dropped in training; without a seed nothing is."""
    model = make_model(**DEEP, **{f"rnn_dropout_{rate}": 0.5})
    seeds = [tf.constant([1, n]) for n in (1, 1, 3)]
    one, again, other = (float(model.total_cost(*PAIRS, dropout_seed=seed)) for seed in seeds)
    assert one == again
    assert one != other
    assert one != float(model.total_cost(*PAIRS))


@pytest.mark.parametrize("activation", ["tanh", "relu", "prelu", "linear"])
def test_output_activations(make_model, activation):
    model = make_model(output_hidden_activation=activation)
    functions = {
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "prelu": lambda x: np.where(x > 0, x, 0.3 * x),
        "linear": lambda x: x,
    }
    if activation == "prelu":
        model.decoder.activation.slope.assign(np.full(5, 0.3))
    x = np.linspace(-2, 2, 10, dtype=np.float32).reshape(2, 5)
    np.testing.assert_allclose(model.decoder.activation(x), functions[activation](x), rtol=1e-5)


def test_tied_output_is_the_target_embedding(make_model):
    tied = make_model(tie_decoder_embeddings=True)
    assert len(make_model().weights) - len(tied.weights) == 1
    before = tied(SOURCE, SOURCE_MASK, TARGET).numpy()
    bias = tied.decoder.output_bias
    tied.decoder.embedding.table.assign(np.zeros(tied.decoder.embedding.table.shape))
    bias.assign(np.arange(6.0))
    after = tied(SOURCE, SOURCE_MASK, TARGET).numpy()
    assert (before != after).any()
    np.testing.assert_allclose(after, np.broadcast_to(np.arange(6.0), after.shape))


def test_attention_is_a_distribution_over_source_words_that_later_words_do_not_change(model):
    rng = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(rng.normal(0.0, 0.4, size=weight.shape))
    weights = model.attention(SOURCE, SOURCE_MASK, TARGET).numpy()
    assert weights.shape == (2, 4, 3)
    np.testing.assert_allclose((weights * SOURCE_MASK[:, np.newaxis]).sum(-1), 1.0, rtol=1e-5)
    assert weights.std(1).max() > 1e-3  # the words of a target attend in different ways
    other = TARGET.copy()
    other[:, 2] = 4
    found = model.attention(SOURCE, SOURCE_MASK, other).numpy()
    np.testing.assert_allclose(found[:, :3], weights[:, :3], rtol=1e-5)
    assert abs(found[:, 3] - weights[:, 3]).max() > 1e-5
