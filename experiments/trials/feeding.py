"""Batches of arrays for Keras, without the autotuning of tf.data."""

from typing import Any

import tensorflow as tf


def in_batches(inputs: Any, targets: Any = None, *, batch_size: int) -> tf.data.Dataset:
    """Returns a dataset of the batches of some examples, in order, for `fit`, `evaluate` and `predict`.

    Given arrays, Keras builds a dataset whose autotuning thread sleeps for 10 ms, 20 ms, 40 ms and so on, and the end
    of the dataset waits for it: a call of 3 s takes 5 s. So autotuning is off here.

    Args:
        inputs: `[examples, ...]`, or a list of such arrays.
        targets: `[examples, ...]`; `None` for predictions.
        batch_size: Examples in a batch; the last batch holds the rest.
    """
    inputs = tuple(inputs) if isinstance(inputs, list) else inputs
    parts = (inputs,) if targets is None else (inputs, targets)
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.from_tensor_slices(parts).batch(batch_size).with_options(options)
