"""Runs a command of `nmt` with weight normalization; runs in the patched copy of the baseline.

    python -m experiments.translation.inside.weight_normalized train --model DIR --config FILE

Every matrix but the embeddings and the output table is `W = V / ||V|| * g`, with norms and gains of the columns. The
gains begin at the norms of V, so that the model begins as without weight normalization.

Reference: Salimans & Kingma (2016), arXiv:1602.07868.
"""

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

from nmt.__main__ import main
from nmt.model.layers import Block

_PLAIN = ("embeddings", "output_kernel")


class WeightNormalized:
    """A matrix that TensorFlow computes from V `[rows, columns]` and the gains `[columns]` wherever it is used."""

    def __init__(self, direction: keras.Variable, gain: keras.Variable):
        self.direction, self.gain = direction, gain
        self.shape = direction.shape

    @property
    def value(self) -> tf.Tensor:
        """The matrix."""
        return _unit_columns(self.direction.value) * self.gain.value


def _tensor(matrix: WeightNormalized, dtype=None, name=None, as_ref=False) -> tf.Tensor:
    return matrix.value


tf.register_tensor_conversion_function(WeightNormalized, _tensor)


def _unit_columns(matrix: tf.Tensor) -> tf.Tensor:
    return matrix * tf.math.rsqrt(tf.reduce_sum(tf.square(matrix), 0))


@contextlib.contextmanager
def weight_normalization() -> Iterator[None]:
    """Within this context, models are built with weight normalization."""
    plain = Block._matrix

    def make(self: Block, name: str, rows: int, columns: int, initializer=None) -> keras.Variable | WeightNormalized:
        direction = plain(self, name, rows, columns, initializer)
        if name in _PLAIN:
            return direction
        norms = tf.norm(direction.value, axis=0).numpy()
        gain = self.add_weight(shape=(columns,), initializer=lambda *_, **__: norms, name=f"{name}_gain")
        return WeightNormalized(direction, gain)

    Block._matrix = make
    try:
        yield
    finally:
        Block._matrix = plain


if __name__ == "__main__":
    with weight_normalization():
        main()
