"""Conversion of recurrent cells with LayerNorm inside."""

import re

import keras
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormGRU, RMSNormGRUCell, RMSNormLSTM, RMSNormSimpleRNNCell
from tests.folding import LN, assert_stays, fold, layers, tagger

RECURRENT = {
    "gru": (lambda: RMSNormGRU(4, name="gru", **LN), ["gru/cell"]),
    "reset-before": (lambda: RMSNormGRU(4, reset_after=False, name="gru", **LN), ["gru/cell"]),
    "bias-inside": (lambda: RMSNormGRU(4, normalize_bias=True, name="gru", **LN), ["gru/cell"]),
    "no-bias": (
        lambda: RMSNormGRU(4, normalize_bias=True, use_bias=False, name="gru", **LN),
        ["gru/cell"],
    ),
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
        ["stack/stacked_rnn_cells/first", "stack/stacked_rnn_cells/second"],
    ),
}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] * bool(i))
        for i, (name, case) in enumerate(RECURRENT.items())
    ],
)
def test_ln_gru_tagger(make, names, policy):
    model = tagger(make())
    report = fold(model)
    assert [re.sub(r"_cells_\d+", "_cells", name) for name in report] == [
        *names,
        "norm",
    ]  # Keras counts the cells
    assert all(entry.converted for entry in report.values())
    assert next(iter(report.values())).reason == "centring folded into its kernels"
    assert not any(
        isinstance(t, layers.LayerNormalization)
        for t in tf.train.TrackableView(model).descendants()
    )


def test_a_cell_that_has_rms_or_nothing_inside_is_not_reported():
    assert list(fold(tagger(RMSNormGRU(4, return_sequences=True)))) == ["norm"]


@pytest.mark.slow
def test_a_lstm_stays_beside_cells_that_do_not():
    lstm = RMSNormLSTM(4, name="lstm", **LN)
    x = keras.Input((5, 3))
    report = fold(keras.Model(x, RMSNormGRU(4, name="gru", **LN)(lstm(x))))
    assert report["gru/cell"].converted
    assert_stays(report["lstm/cell"], "cell state")
    assert lstm.cell.normalization == "layer"
