"""Sinusoids without their mean over the units; runs in the patched copy of the baseline."""

import tensorflow as tf

from nmt.model import transformer, transformer_layers


def centre_positions() -> None:
    """Makes every Transformer that this process builds later take the mean from each position's
    sinusoids."""
    transformer.sinusoids = _centred


def _centred(first: tf.Tensor | int, count: tf.Tensor | int, units: int, kind: str) -> tf.Tensor:
    table = transformer_layers.sinusoids(first, count, units, kind)  # [count, units]
    return table - tf.reduce_mean(table, -1, keepdims=True)
