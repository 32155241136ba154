"""Exponential smoothing: a moving average of the weights, which translates better than the last weights."""

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

from ..model.contract import TranslationModel

_EARLY = 9.0  # as in Marian: after update t, the share of the newest weights is at least 9 / (t + 9)


class SmoothedWeights:
    """A moving average of the weights of a model.

    After update t, the average moves towards the weights by the share `max(factor, 9 / (t + 9))`. The first updates
    have a larger share, so that the initial weights are soon forgotten.

    Args:
        model: The model.
        factor: Share of the newest weights in the average, as `--exponential_smoothing` of Nematus.

    Attributes:
        variables: The averages, in the order of the model's trainable variables.

    Reference: Junczys-Dowmunt et al. (2018), arXiv:1804.00344.
    """

    def __init__(self, model: TranslationModel, factor: float):
        self._weights, self._factor = model.trainable_variables, factor
        with keras.name_scope("smoothed"):
            self.variables = [
                keras.Variable(weight.numpy(), trainable=False, name=weight.path.replace("/", "_"))
                for weight in self._weights
            ]

    def follow(self, updates: tf.Tensor) -> None:
        """Moves the averages towards the weights after this number of updates."""
        share = tf.maximum(self._factor, _EARLY / (tf.cast(updates, tf.float32) + _EARLY))
        for average, weight in zip(self.variables, self._weights, strict=True):
            average.assign_add(share * (weight.value - average.value))

    @contextlib.contextmanager
    def swapped(self) -> Iterator[None]:
        """Within this context, the model has the averages for weights."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for average, weight in zip(self.variables, self._weights, strict=True):
            value = weight.numpy().copy()  # numpy() may share its memory
            weight.assign(average.value)
            average.assign(value)
