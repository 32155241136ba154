"""The kinds of normalization of both papers, of the cell state of an LSTM. Epsilon is the same for all."""

import keras

from rmsnorm_tf import RMSNormalization

from ...trials.trial import TrialRow

EPSILON = 1e-5


def _layer(name: str) -> keras.layers.Layer:
    return keras.layers.LayerNormalization(epsilon=EPSILON, name=name)


def _rms(name: str) -> keras.layers.Layer:
    return RMSNormalization(epsilon=EPSILON, center=True, name=name)


def _partial_rms(name: str) -> keras.layers.Layer:
    return RMSNormalization(partial=0.0625, epsilon=EPSILON, center=True, name=name)


ROWS = [
    TrialRow("none", "no norm", None, paper=True),
    TrialRow("layernorm", "LayerNorm", _layer, paper=True),
    TrialRow("rmsnorm", "RMSNorm", _rms, paper=True),
    TrialRow("prmsnorm", "pRMSNorm, p = 6.25%", _partial_rms, paper=True),
]
