"""Changes the Transformer for single conditions; runs in the patched copy of the baseline."""

from typing import Any
from unittest import mock

import tensorflow as tf

from nmt.model import transformer, transformer_layers
from rmsnorm_tf import RMSNormalization


def add_last_offset() -> None:
    """Gives the decoder's last norm an offset, in every Transformer built later."""
    transformer.Transformer._decoder = _Decoder


class _Decoder(transformer.Decoder):
    def __init__(self, *arguments):
        with mock.patch.object(transformer, "_final_norm", _norm_with_offset):
            super().__init__(*arguments)


def _norm_with_offset(config: Any) -> RMSNormalization:
    layer = RMSNormalization(epsilon=1e-5, center=True, name="final_norm")
    layer.build((None, config.state_size))
    return layer


def centre_positions() -> None:
    """Takes the mean from each position's sinusoids, in every Transformer built later."""
    transformer.sinusoids = _centred


def _centred(first: tf.Tensor | int, count: tf.Tensor | int, units: int, kind: str) -> tf.Tensor:
    table = transformer_layers.sinusoids(first, count, units, kind)  # [count, units]
    return table - tf.reduce_mean(table, -1, keepdims=True)
