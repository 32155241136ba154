"""Defines positions, residual connections, feed-forward and whole layers of a Transformer."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ..normalization import build_normalization
from .forward_pass import ForwardPass, drop
from .layers import Block
from .multi_head_attention import KeysAndValues, MultiHeadAttention, Positions, WeightAndBias

_LONGEST_WAVE = 10_000.0  # of the positions
_ACTIVATIONS = {
    "relu": tf.nn.relu,
    "swish": tf.nn.silu,
    "gelu": tf.nn.gelu,
    "gelu_tanh": functools.partial(tf.nn.gelu, approximate=True),
}


class Residual(Block):
    """A residual connection around a function f, with N the normalization:

        x + dropout(f(N(x)))    where the norm comes before ("pre")
        N(x + dropout(f(x)))    where it comes after ("post")

    Reference: Xiong et al. (2020), arXiv:2002.04745, on the two positions.
    """

    def __init__(self, config: Any, name: str):
        super().__init__(name=name)
        self.is_pre = config.transformer_norm_position == "pre"
        self.rate = config.transformer_dropout_residual
        with keras.name_scope(name):
            self.norm = build_normalization(config.normalization, config.state_size, "norm")

    def input(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the input of f, `[rows, units]`."""
        return self.norm(x) if self.is_pre else x

    def sum(self, x: tf.Tensor, added: tf.Tensor, forward: ForwardPass) -> tf.Tensor:
        """Returns the output for the result of f, `[rows, units]`."""
        total = x + drop(added, forward.draw(self.rate, tf.shape(added)))
        return total if self.is_pre else self.norm(total)


class FeedForward(Block):
    """`f(x W_1 + b_1) W_2 + b_2` at each position, with f the activation."""

    def __init__(self, config: Any, name: str):
        super().__init__(name=name)
        self.rate = config.transformer_dropout_relu
        self.activation = config.transformer_activation
        units = config.state_size
        inner = config.transformer_ffn_hidden_size
        glorot = keras.initializers.GlorotUniform
        self.inner_kernel = self._matrix("inner_kernel", units, inner, glorot())
        self.inner_bias = self._vector("inner_bias", inner)
        self.outer_kernel = self._matrix("outer_kernel", inner, units, glorot())
        self.outer_bias = self._vector("outer_bias", units)

    def call(self, x: tf.Tensor, *, forward: ForwardPass) -> tf.Tensor:
        x = drop(x, forward.draw(self.rate, tf.shape(x)))
        inner = _ACTIVATIONS[self.activation](forward.affine(x, self.inner_kernel, self.inner_bias))
        return forward.affine(inner, self.outer_kernel, self.outer_bias)


class TransformerLayer(Block):
    """Self-attention, a decoder's attention to the source, feed-forward; each is residual."""

    def __init__(self, config: Any, name: str, *, reads_source: bool = False):
        super().__init__(name=name)
        self.cross_attention = None
        with keras.name_scope(name):
            self.attention = MultiHeadAttention(config, "self_attention")
            self.attention_residual = Residual(config, "self_attention_residual")
            if reads_source:
                self.cross_attention = MultiHeadAttention(config, "cross_attention")
                self.cross_residual = Residual(config, "cross_attention_residual")
            self.feed_forward = FeedForward(config, "feed_forward")
            self.feed_forward_residual = Residual(config, "feed_forward_residual")

    def call(
        self,
        x: tf.Tensor,
        sizes: Positions,
        bias: tf.Tensor,
        projections: Sequence[WeightAndBias],
        source: KeysAndValues | None = None,
        source_bias: tf.Tensor | None = None,
        past: KeysAndValues | None = None,
        *,
        forward: ForwardPass,
    ) -> tuple[tf.Tensor, KeysAndValues]:
        """Returns the output, of the shape of `x`, and the keys and values of all positions so far.

        Args:
            x: All positions of the sentences or, in decoding, a new one of each hypothesis, `[rows,
                units]`.
            sizes: Sentences, and positions of each.
            bias: That of the self-attention; see `MultiHeadAttention.call`.
            projections: Those of the self-attention, single or fused.
            source: Keys and values of the source.
            source_bias: That of the attention to the source, `[batch, 1, 1, source_time]`.
            past: Keys and values of the positions before, of all hypotheses of a sentence.
        """
        x, own = self._attend_words(x, sizes, bias, projections, past, forward)
        if (cross := self.cross_attention) is not None:
            queries = self._source_queries(x, sizes, forward)
            attended = cross(queries, source, source_bias, forward=forward)
            x = self.cross_residual.sum(x, attended, forward)
        fed = self.feed_forward(self.feed_forward_residual.input(x), forward=forward)
        return self.feed_forward_residual.sum(x, fed, forward), own

    def source_weights(
        self,
        x: tf.Tensor,
        sizes: Positions,
        bias: tf.Tensor,
        source: KeysAndValues,
        source_bias: tf.Tensor,
    ) -> tf.Tensor:
        """Returns how much each position attends to each of the source, the mean of the heads,
        `[batch, time, source_time]`, with the arguments of `call`.
        """
        forward = ForwardPass()
        x, _ = self._attend_words(x, sizes, bias, self.attention.projections, None, forward)
        queries = self._source_queries(x, sizes, forward)
        weights = self.cross_attention.attention_weights(queries, source, source_bias, forward)
        return tf.reduce_mean(weights, 1)

    def _attend_words(
        self, x, sizes, bias, projections, past, forward: ForwardPass
    ) -> tuple[tf.Tensor, KeysAndValues]:
        """Returns the output of the self-attention, and all its keys and values."""
        inputs = self.attention_residual.input(x)
        queries, *new = self.attention.project(inputs, sizes, projections, forward)
        own = KeysAndValues.of(*new)
        own = own if past is None else past.append(own)
        attended = self.attention(queries, own, bias, forward=forward)
        return self.attention_residual.sum(x, attended, forward), own

    def _source_queries(self, x: tf.Tensor, sizes: Positions, forward: ForwardPass) -> tf.Tensor:
        inputs = self.cross_residual.input(x)
        projections = self.cross_attention.projections[:1]
        return self.cross_attention.project(inputs, sizes, projections, forward)[0]


def sinusoids(first: tf.Tensor | int, count: tf.Tensor | int, units: int, kind: str) -> tf.Tensor:
    """Returns the vectors `[sin(t w), cos(t w)]` of positions t, `[count, units]`.

    The frequencies w fall from 1 in a geometric series, whose last one is 1 / 10,000, or whose next
    one would be. Sines and cosines are halves side by side.

    Args:
        units: Size of the embeddings, an even number of at least 4.
        kind: `tensor2tensor` or `paper`, see `transformer_positions` of the configuration.

    Reference: Vaswani et al. (2017), arXiv:1706.03762, section 3.5, where sines and cosines
    alternate.
    """
    half = units // 2
    steps = half - 1 if kind == "tensor2tensor" else half
    frequencies = tf.exp(tf.range(half, dtype=tf.float32) * (-math.log(_LONGEST_WAVE) / steps))
    # [count, half].
    angles = tf.cast(tf.range(count) + first, tf.float32)[:, tf.newaxis] * frequencies
    return tf.concat([tf.sin(angles), tf.cos(angles)], -1)
