"""The kinds of normalization of Ba et al. (2016) and of Zhang & Sennrich (2019).

Epsilon is the same for all. Every kind has an offset, as the layers without a norm have a bias.
"""

import keras

from rmsnorm_tf import RMSNormalization

from ...trials.trial import TrialRow
from ..batch_normalization import UnbiasedBatchNormalization

EPSILON = 1e-6


def _layer(name: str) -> keras.layers.Layer:
    return keras.layers.LayerNormalization(epsilon=EPSILON, name=name)


def _rms(name: str) -> keras.layers.Layer:
    return RMSNormalization(epsilon=EPSILON, center=True, name=name)


def _partial_rms(name: str) -> keras.layers.Layer:
    return RMSNormalization(partial=0.0625, epsilon=EPSILON, center=True, name=name)


def _batch(name: str) -> keras.layers.Layer:
    return UnbiasedBatchNormalization(epsilon=EPSILON, name=name)


ROWS = [
    TrialRow("none", "no norm", None, paper=True),
    TrialRow("layernorm", "LayerNorm", _layer, paper=True),
    TrialRow("rmsnorm", "RMSNorm", _rms, paper=True),
    TrialRow("prmsnorm", "pRMSNorm, p = 6.25%", _partial_rms, paper=True),
    TrialRow("batchnorm", "BatchNorm, logits too", _batch, paper=True, options={"normalize_logits": True}),
]
