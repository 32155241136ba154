"""Scaled dot-product attention in several heads."""

from typing import NamedTuple

import keras
import tensorflow as tf

from .affine import affine, batch_product, leading_sizes, over_rows
from .dropout import DropoutMasks, drop
from .layers import Block

_MASKED = -1e9  # as in Nematus


class KeysAndValues(NamedTuple):
    """Keys and values of the positions that attention reads."""

    keys: tf.Tensor  # [batch, heads, time, units / heads]
    values: tf.Tensor  # [batch, heads, time, units / heads]

    def followed_by(self, later: "KeysAndValues") -> "KeysAndValues":
        """Returns these positions and the later ones."""
        return KeysAndValues(*(tf.concat(pair, 2) for pair in zip(self, later, strict=True)))


class MultiHeadAttention(Block):
    """Attention in heads i = 1 ... h, without biases:

        head_i = softmax(Q_i K_i^T / sqrt(units / h) + bias) V_i
        output = [head_1, ..., head_h] W_o

    Q, K, V are products of the input or the memory with one matrix each, split into heads.

    Args:
        units: Size of the input, the memory and the output.
        heads: Number of heads, a divisor of `units`.
        weight_rate: Dropout rate of the attention weights.
        head_rate: Dropout rate of whole heads, drawn for each sentence.
        name: Name of the layer.

    Reference: Vaswani et al. (2017), arXiv:1706.03762, section 3.2; Zhou et al. (2020), arXiv:2004.13342, DropHead.
    """

    def __init__(self, units: int, heads: int, weight_rate: float, head_rate: float, name: str):
        super().__init__(name=name)
        self.units, self.heads = units, heads
        self.weight_rate, self.head_rate = weight_rate, head_rate
        self.queries, self.keys, self.values, self.output_kernel = (
            self._matrix(matrix, units, units, keras.initializers.GlorotUniform())
            for matrix in ("queries", "keys", "values", "output")
        )

    def remember(self, memory: tf.Tensor) -> KeysAndValues:
        """Returns the keys and values of `[batch, time, units]`."""
        return KeysAndValues(self._heads(memory, self.keys), self._heads(memory, self.values))

    def call(
        self, x: tf.Tensor, memory: KeysAndValues, bias: tf.Tensor | None = None, *, dropout: DropoutMasks
    ) -> tf.Tensor:
        """Attends from each position of `x` to the memory.

        Args:
            x: `[batch, time, units]`.
            memory: The keys and values, of `memory_time` positions.
            bias: Added to the scores; it broadcasts to `[batch, heads, time, memory_time]`.
            dropout: Draws the dropout masks.

        Returns:
            `[batch, time, units]`.
        """
        scores = batch_product(self._heads(x, self.queries), memory.keys, transpose=True)
        scores *= (self.units // self.heads) ** -0.5
        weights = tf.nn.softmax(scores if bias is None else scores + bias)
        sizes = tf.shape(weights)
        weights = drop(weights, dropout.draw(self.weight_rate, sizes))
        weights = drop(weights, dropout.draw(self.head_rate, [sizes[0], sizes[1], 1, 1]))
        found = tf.transpose(batch_product(weights, memory.values), [0, 2, 1, 3])  # [batch, time, heads, units / heads]
        merged = tf.reshape(found, [*leading_sizes(x), self.units])
        return over_rows(lambda rows: affine(rows, self.output_kernel), merged)

    def _heads(self, x: tf.Tensor, kernel: keras.Variable) -> tf.Tensor:
        """Returns the product with a matrix, `[batch, heads, time, units / heads]`."""
        product = over_rows(lambda rows: affine(rows, kernel), x)
        split = tf.reshape(product, [*leading_sizes(x), self.heads, self.units // self.heads])
        return tf.transpose(split, [0, 2, 1, 3])


def padding_bias(mask: tf.Tensor) -> tf.Tensor:
    """Returns the bias that hides padding, `[batch, 1, 1, time]`, of a mask `[batch, time]`."""
    return (1.0 - mask)[:, tf.newaxis, tf.newaxis] * _MASKED


def future_bias(time: tf.Tensor | int) -> tf.Tensor:
    """Returns the bias that hides later positions from earlier ones, `[time, time]`."""
    return (1.0 - tf.linalg.band_part(tf.ones([time, time]), -1, 0)) * _MASKED
