"""Computes scaled dot-product attention in several heads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from .forward_pass import ForwardPass, Weight, drop, rounded_product
from .layers import Block

Positions = Sequence[tf.Tensor]  # batch and time of the positions that are rows of one matrix
# A matrix [units, units], or several side by side, and perhaps a bias.
WeightAndBias = tuple[Weight, ...]

_MASKED = -1e9  # as in Nematus
_PRODUCTS = ("queries", "keys", "values", "output")


class KeysAndValues(NamedTuple):
    """Keys and values of the positions that attention reads.

    Keys are stored as the product with queries takes them.
    """

    keys: tf.Tensor  # [batch, heads, units / heads, time]
    values: tf.Tensor  # [batch, heads, time, units / heads]

    @classmethod
    def of(cls, keys: tf.Tensor, values: tf.Tensor) -> "KeysAndValues":
        """Stores projected keys and values, `[batch, heads, time, units / heads]`."""
        return cls(tf.linalg.matrix_transpose(keys), values)

    def append(self, new: "KeysAndValues") -> "KeysAndValues":
        return KeysAndValues(
            tf.concat([self.keys, new.keys], 3), tf.concat([self.values, new.values], 2)
        )


class MultiHeadAttention(Block):
    """Attention in heads i = 1 ... h:

        head_i = softmax(Q_i K_i^T / sqrt(units / h) + bias) V_i
        output = [head_1, ..., head_h] W_o

    Q, K, V are products of the input or the memory with one matrix each, split into heads. The four
    products may have biases.

    Reference: Vaswani et al. (2017), arXiv:1706.03762, section 3.2; Zhou et al. (2020),
    arXiv:2004.13342, DropHead.
    """

    def __init__(self, config: Any, name: str):
        super().__init__(name=name)
        self.units = config.state_size
        self.heads = config.transformer_num_heads
        self.weight_rate = config.transformer_dropout_attn
        self.head_rate = config.transformer_drophead  # of whole heads, drawn for each sentence
        self.queries, self.keys, self.values, self.output_kernel = (
            self._matrix(matrix, self.units, self.units, keras.initializers.GlorotUniform())
            for matrix in _PRODUCTS
        )
        self._biases = []
        if config.transformer_attention_bias:
            self._biases = [self._vector(f"{matrix}_bias", self.units) for matrix in _PRODUCTS]

    @property
    def projections(self) -> list[WeightAndBias]:
        """The projections to queries, keys and values."""
        inputs = self.queries, self.keys, self.values
        return list(zip(inputs, *([self._biases[:3]] if self._biases else []), strict=True))

    @property
    def output_projection(self) -> WeightAndBias:
        """The projection to the output."""
        return self.output_kernel, *self._biases[3:]

    def fused(self) -> WeightAndBias:
        """Returns the projections to queries, keys and values as one, to `3 * units`."""
        kinds = zip(*self.projections, strict=True)
        return tuple(tf.concat(list(map(tf.convert_to_tensor, each)), -1) for each in kinds)

    def project(
        self,
        x: tf.Tensor,
        sizes: Positions,
        projections: Sequence[WeightAndBias],
        forward: ForwardPass,
    ) -> list[tf.Tensor]:
        """Returns each projection of the rows, `[batch, heads, time, units / heads]`.

        Args:
            x: `[batch * time, units]`.
            sizes: Sentences, and positions of each.
        """
        found = []
        for projection in projections:
            parts = [
                *sizes,
                projection[0].shape[1] // self.units,
                self.heads,
                self.units // self.heads,
            ]
            split = tf.reshape(forward.affine(x, *projection), parts)
            found += tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]))
        return found

    def attention_weights(
        self, queries: tf.Tensor, memory: KeysAndValues, bias: tf.Tensor, forward: ForwardPass
    ) -> tf.Tensor:
        """Returns the weight of each position of the memory, `[batch, heads, time, memory_time]`,
        with the arguments of `call`.
        """
        scores = rounded_product(queries, memory.keys, forward.dtype)
        return tf.nn.softmax(scores * (self.units // self.heads) ** -0.5 + bias)

    def call(
        self, queries: tf.Tensor, memory: KeysAndValues, bias: tf.Tensor, *, forward: ForwardPass
    ) -> tf.Tensor:
        """Returns what each position attends to in the memory, `[batch * time, units]`.

        Args:
            queries: `[batch, heads, time, units / heads]`.
            memory: The keys and values, of `memory_time` positions.
            bias: Added to the scores; it broadcasts to `[batch, heads, time, memory_time]`.
        """
        weights = self.attention_weights(queries, memory, bias, forward)
        sizes = tf.shape(weights)
        weights = drop(weights, forward.draw(self.weight_rate, sizes))
        weights = drop(weights, forward.draw(self.head_rate, [sizes[0], sizes[1], 1, 1]))
        found = tf.transpose(rounded_product(weights, memory.values, forward.dtype), [0, 2, 1, 3])
        return forward.affine(tf.reshape(found, [-1, self.units]), *self.output_projection)


def padding_bias(mask: tf.Tensor) -> tf.Tensor:
    """Returns the bias that hides padding, `[batch, 1, 1, time]`, of a mask `[batch, time]`."""
    return (1.0 - mask)[:, tf.newaxis, tf.newaxis] * _MASKED


def others_bias(hypotheses: tf.Tensor) -> tf.Tensor:
    """Returns the bias that hides each hypothesis from the others, `[hypotheses, hypotheses]`."""
    return (1.0 - tf.eye(hypotheses)) * _MASKED


def future_bias(time: tf.Tensor | int) -> tf.Tensor:
    """Returns the bias that hides later positions from earlier ones, `[time, time]`."""
    return (1.0 - tf.linalg.band_part(tf.ones([time, time]), -1, 0)) * _MASKED
