"""The kinds of normalization of Ba et al. (2016) and of Zhang & Sennrich (2019).

Epsilon is the same for all. Every kind has an offset, as the layers without a norm have a bias.

A condition in a file added here is trained and reported with the rest.
"""

import keras

from ...runs.kinds import norm_conditions
from ...runs.run import Condition
from ..batch_normalization import UnbiasedBatchNormalization

EPSILON = 1e-6


def _batch(name: str) -> keras.layers.Layer:
    return UnbiasedBatchNormalization(epsilon=EPSILON, name=name)


CONDITIONS = [
    *norm_conditions(EPSILON),
    Condition(
        "batchnorm", "BatchNorm, logits too", _batch, paper=True, options={"normalize_logits": True}
    ),
]
