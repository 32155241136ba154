"""The recurrent cells: against the published equations, values and gradients, and against Keras."""

import functools
import itertools

import keras
import numpy as np
import pytest

from rmsnorm_tf import (
    RMSNormGRU,
    RMSNormGRUCell,
    RMSNormLSTM,
    RMSNormLSTMCell,
    RMSNormSimpleRNNCell,
)
from tests import reference, transcription
from tests.backends import WIDEST, to_array
from tests.cases import assert_close
from tests.parameters import quick_one_of, slow
from tests.transcription import (
    BATCH,
    INPUTS,
    TIME,
    UNITS,
    assert_gradients,
    draw,
    with_drawn_weights,
)

CELLS = {
    "simple": RMSNormSimpleRNNCell,
    "gru": RMSNormGRUCell,
    "gru-reset-before": functools.partial(RMSNormGRUCell, reset_after=False),
    "lstm": RMSNormLSTMCell,
    "lstm-normalized-carry": functools.partial(RMSNormLSTMCell, normalize_carry=True),
}
VARIANTS = {
    "rms": {},
    "partial": {"partial": 0.5},
    "layer": {"normalization": "layer"},
    "none": {"normalization": None},
    "bias-inside": {"normalize_bias": True},
    "no-bias": {"use_bias": False},
}

every_cell = pytest.mark.parametrize("make", CELLS.values(), ids=CELLS)
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def over_time(cell, **options):
    return keras.layers.RNN(cell, return_sequences=True, dtype=cell.dtype_policy, **options)


@every_variant
@every_cell
def test_equations(make, variant):
    cell = with_drawn_weights(make(UNITS, dtype=WIDEST, **variant))
    x = draw(BATCH, TIME, INPUTS, seed=9)
    assert_close(over_time(cell)(x), transcription.outputs(cell, x), WIDEST, factor=20)


@pytest.mark.parametrize("names", quick_one_of(3, itertools.product(VARIANTS, CELLS), "-".join))
def test_gradients(names):
    variant, cell = names
    cell = with_drawn_weights(CELLS[cell](UNITS, dtype=WIDEST, **VARIANTS[variant]))
    assert_gradients(over_time(cell))


def test_the_lstm_of_ba_et_al_with_all_its_gains_and_offsets():
    u = draw(UNITS, 4 * UNITS, seed=1)
    w = draw(INPUTS, 4 * UNITS, seed=2)
    b, alpha_1, beta_1, alpha_2, beta_2 = draw(5, 4 * UNITS, seed=3)
    alpha_3, beta_3 = draw(2, UNITS, seed=4)
    norms = [
        functools.partial(reference.layer_norm, scale=alpha, offset=beta)
        for alpha, beta in ((alpha_1, beta_1), (alpha_2, beta_2), (alpha_3, beta_3))
    ]
    step = functools.partial(reference.lstm_step, w=w, u=u, b=b, norms=norms)
    x = draw(BATCH, TIME, INPUTS, seed=9)
    zeros = np.zeros((BATCH, UNITS))

    cell = RMSNormLSTMCell(UNITS, normalization="layer", dtype=WIDEST)
    cell.build((None, INPUTS))
    # One bias stands for the sum of the three terms that they add.
    cell.set_weights([w, u, b + beta_1 + beta_2, alpha_2, alpha_1, alpha_3, beta_3])
    assert_close(
        over_time(cell)(x), reference.over_time(step, x, zeros, zeros)[0], WIDEST, factor=20
    )


def rln(a, gain):
    return reference.rms_norm(a, gain, epsilon=1e-5)


def reference_gru(x, w_gates, u_gates, b_gates, w, u, b, s1, s2, s3, s4):
    """Steps through the GRU of the paper's reference code: gates r, u; biases inside."""
    h = np.zeros((len(x), u.shape[0]))
    for x_t in np.moveaxis(x, 1, 0):
        gates = rln(h @ u_gates, s3) + rln(x_t @ w_gates + b_gates, s1)
        reset, update = np.split(reference.sigmoid(gates), 2, axis=-1)
        proposal = np.tanh(rln(h @ u, s4) * reset + rln(x_t @ w + b, s2))
        h = update * h + (1 - update) * proposal
    return h


def test_the_gru_of_the_reference_code():
    shapes = [
        (INPUTS, 2 * UNITS),
        (UNITS, 2 * UNITS),
        (2 * UNITS,),
        (INPUTS, UNITS),
        (UNITS, UNITS),
        (UNITS,),
    ]
    shapes += [(2 * UNITS,), (UNITS,), (2 * UNITS,), (UNITS,)]
    weights = [draw(*shape, seed=i) for i, shape in enumerate(shapes)]
    x = draw(BATCH, TIME, INPUTS, seed=20)
    w_gates, u_gates, b_gates, w, u, b, s1, s2, s3, s4 = weights

    def update_first(block):
        return np.concatenate(np.split(block, 2, axis=-1)[::-1], axis=-1)

    gru = RMSNormGRU(UNITS, normalize_bias=True, epsilon=1e-5, dtype=WIDEST)
    gru.build(x.shape)
    bias = np.concatenate([update_first(b_gates), b])
    gru.set_weights(
        [
            np.concatenate([update_first(w_gates), w], -1),
            np.concatenate([update_first(u_gates), u], -1),
            np.stack([bias, np.zeros_like(bias)]),
            *(update_first(s1), s2, update_first(s3), s4),
        ]
    )
    assert_close(gru(x), reference_gru(x, *weights), WIDEST, factor=20)


def reference_lstm(x, w, u, b, s1, s2, s3):
    """Steps through the LSTM of the reference code: gates i, f, o, c; a bias inside and outside."""
    h = c = np.zeros((len(x), u.shape[0]))
    for x_t in np.moveaxis(x, 1, 0):
        i, f, o, g = np.split(rln(h @ u, s2) + rln(x_t @ w + b, s1) + b, 4, axis=-1)
        c = reference.sigmoid(f) * c + reference.sigmoid(i) * np.tanh(g)
        h = reference.sigmoid(o) * np.tanh(rln(c, s3))
    return h


def test_the_lstm_of_the_reference_code():
    shapes = [
        (INPUTS, 4 * UNITS),
        (UNITS, 4 * UNITS),
        (4 * UNITS,),
        (4 * UNITS,),
        (4 * UNITS,),
        (UNITS,),
    ]
    weights = [draw(*shape, seed=i) for i, shape in enumerate(shapes)]
    x = draw(BATCH, TIME, INPUTS, seed=20)

    def output_last(block):
        i, f, o, g = np.split(block, 4, axis=-1)
        return np.concatenate([i, f, g, o], axis=-1)

    w, u, b, s1, s2 = map(output_last, weights[:5])
    lstm = RMSNormLSTM(UNITS, epsilon=1e-5, dtype=WIDEST)
    # The bias inside is here a row of the kernel, for an input that is always one.
    x_and_one = np.concatenate([x, np.ones((BATCH, TIME, 1))], -1)
    lstm.build(x_and_one.shape)
    lstm.set_weights([np.vstack([w, b]), u, b, s1, s2, weights[5], np.zeros(UNITS)])
    assert_close(lstm(x_and_one), reference_lstm(x, *weights), WIDEST, factor=20)


KERAS = {
    "simple": (RMSNormSimpleRNNCell, keras.layers.SimpleRNNCell, {}),
    "gru": (RMSNormGRUCell, keras.layers.GRUCell, {}),
    "gru-reset-before": (RMSNormGRUCell, keras.layers.GRUCell, {"reset_after": False}),
    "lstm": (RMSNormLSTMCell, keras.layers.LSTMCell, {}),
    "lstm-no-forget-bias": (RMSNormLSTMCell, keras.layers.LSTMCell, {"unit_forget_bias": False}),
}


@pytest.mark.parametrize("use_bias", [True, *slow(False)])
@pytest.mark.parametrize(
    "options", [{}, {"activation": "relu"}, *slow({"activation": None})], ids=str
)
@pytest.mark.parametrize(("ours", "theirs", "arguments"), KERAS.values(), ids=KERAS)
def test_without_normalization_a_cell_is_that_of_keras(ours, theirs, arguments, options, use_bias):
    arguments = {**arguments, **options, "use_bias": use_bias}
    cells = []
    for make in (theirs, functools.partial(ours, normalization=None)):
        keras.utils.set_random_seed(0)
        cells.append(make(UNITS, **arguments))
        cells[-1].build((None, INPUTS))
    for a, b in zip(*(cell.weights for cell in cells), strict=True):
        assert a.name == b.name
        np.testing.assert_array_equal(to_array(a), to_array(b))  # as initialized
    weights = [draw(*w.shape, seed=i) / 2 for i, w in enumerate(cells[0].weights)]
    for cell in cells:
        cell.set_weights(weights)
    x = draw(BATCH, TIME, INPUTS, seed=9, dtype="float32")
    expected, actual = (
        keras.layers.RNN(cell, return_sequences=True, return_state=True)(x) for cell in cells
    )
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, factor=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"normalization": "batch"}, 'normalization must be "rms", "layer" or None, got \'batch\''),
        (
            {"normalization": "layer", "partial": 0.5},
            "partial=0.5 needs normalization=\"rms\", got 'layer'",
        ),
        (
            {"normalization": None, "partial": 0.5},
            'partial=0.5 needs normalization="rms", got None',
        ),
        ({"partial": 1.5}, "partial must be None or a number above 0 and at most 1, got 1.5"),
        ({"epsilon": 0.0}, "epsilon must be a finite number"),
        ({"normalize_bias": "no"}, "normalize_bias must be one of True, False, got 'no'"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "make", [RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell, RMSNormGRU, RMSNormLSTM]
)
def test_arguments_out_of_range(make, arguments, message):
    with pytest.raises(ValueError) as caught:
        make(4, **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("normalization", ["rms", "layer"])
@every_cell
def test_a_cell_without_bias_has_no_offset(make, normalization):
    cell = make(UNITS, use_bias=False, normalization=normalization)
    cell.build((None, INPUTS))
    gain = {"rms": "scale", "layer": "gamma"}[normalization]
    assert {weight.name for weight in cell.weights} == {"kernel", "recurrent_kernel", gain}


def test_normalize_carry_is_a_flag():
    with pytest.raises(ValueError, match=r"normalize_carry .* False, got 1"):
        RMSNormLSTM(4, normalize_carry=1)


@pytest.mark.parametrize(
    "wrap", [lambda cell: cell, keras.layers.TimeDistributed], ids=["alone", "time-distributed"]
)
def test_a_cell_without_states_says_what_to_do(wrap):
    with pytest.raises(
        TypeError,
        match=r"states\. Put it into keras\.layers",
    ):
        wrap(RMSNormGRUCell(UNITS, name="cell"))(keras.ops.ones((2, 3, INPUTS)))
