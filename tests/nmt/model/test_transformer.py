"""The Transformer: what padding, dropout and step-by-step decoding may and may not change."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.config import Config
from nmt.model.transformer import FIRST_WORD, Transformer
from tests.nmt.model.blocks import assert_same_gradients
from tests.nmt.model.steps import (
    assert_hypotheses_share_a_memory,
    assert_steps_equal_the_whole_sentence,
)
from tests.nmt.model.transformers import (
    HEADS,
    MARIAN,
    PAIRS,
    RATES,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    TARGET_MASK,
    UNITS,
    make,
)


@pytest.fixture(params=["pre", "post"])
def model(kind, request):
    return make(kind, request.param)


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
