"""The LSTM of a row, and what it reads."""

from typing import Any

import keras
from keras import ops

from rmsnorm_tf import RMSNormLSTM

from ..trials.cell_rows import cell_options
from ..trials.trial import TrialRow
from .batch_normalization import BatchNormLSTMCell
from .data import PADDING

OF_THE_MODEL = ("gain", "normalize_attention")  # options of a row that are not arguments of its LSTMs


def build_lstm(row: TrialRow, units: int, **options: Any) -> keras.layers.RNN:
    """Returns the LSTM of a row.

    Args:
        row: Its options are arguments of `RMSNormLSTM`, or of `BatchNormLSTMCell` if `normalization` is `batch`.
        units: Size of the states.
        **options: Arguments of `keras.layers.RNN`.
    """
    arguments = {name: value for name, value in cell_options(row).items() if name not in OF_THE_MODEL}
    if arguments["normalization"] != "batch":
        return RMSNormLSTM(units, name="lstm", **arguments, **options)
    del arguments["normalization"]
    return keras.layers.RNN(BatchNormLSTMCell(units, **arguments), name="lstm", **options)


def lstm_inputs(cell: keras.layers.Layer, ids, vectors):
    """Returns what a cell reads, given ids `[batch, time]` and vectors `[batch, time, word_units]` of words.

    These are the vectors and, for batch normalization, where there is a word, `[batch, time, word_units + 1]`.
    """
    if not isinstance(cell, BatchNormLSTMCell):
        return vectors
    return ops.concatenate([vectors, ops.cast(ids != PADDING, vectors.dtype)[..., None]], -1)
