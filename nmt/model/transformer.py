"""Defines the Transformer, with sinusoid positions.

With the norm before each sublayer, it equals that of Nematus.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from ..normalization import build_normalization
from .contract import NextWords
from .costs import log_normalizers, word_costs
from .encoder_decoder import EncoderDecoder
from .forward_pass import ForwardPass, affine, drop
from .layers import Block, Embedding, without_last_gradients
from .multi_head_attention import KeysAndValues, future_bias, others_bias, padding_bias
from .transformer_layers import TransformerLayer, sinusoids

FIRST_WORD = 1  # the id of <GO> in Nematus's dictionaries

# [rows, words], the bias that hides the words of other hypotheses among those of the memory.
State = tf.Tensor


class Memory(NamedTuple):
    """The keys and values of the source sentences and of the words so far.

    Keys and values of a word stay where its hypothesis was when it was added, so none are copied
    when search reorders the hypotheses. A row of the state hides those that do not belong to it.
    """

    source: list[KeysAndValues]  # for each layer
    bias: tf.Tensor  # [batch, 1, 1, source_time]
    words: list[KeysAndValues | None]  # for each layer, of all hypotheses; None in training


class Encoder(Block):
    """Maps source ids `[batch, source_time]` to their context `[batch * source_time, units]`."""

    def __init__(self, words: int, config: Any):
        super().__init__(name="encoder")
        self.rate = config.transformer_dropout_embeddings
        self.positions = config.transformer_positions
        with keras.name_scope(self.name):
            self.embedding = _embedding(
                words, config, of_target=config.tie_encoder_decoder_embeddings
            )
            self.stack = [
                TransformerLayer(config, f"layer_{i + 1}")
                for i in range(config.transformer_enc_depth)
            ]
            self.final_norm = _final_norm(config)

    def call(self, source: tf.Tensor, bias: tf.Tensor, *, forward: ForwardPass) -> tf.Tensor:
        x = _embed(source, self.embedding.rows, 0, self.positions)
        sizes = tf.unstack(tf.shape(source))
        x = drop(x, forward.draw(self.rate, tf.shape(x)))
        for layer in self.stack:
            x, _ = layer(x, sizes, bias, layer.attention.projections, forward=forward)
        return self.final_norm(x)


class Decoder(Block):
    """Maps previous words and the source to the input of the output layer."""

    def __init__(self, words: int, config: Any, shared: Embedding | None):
        super().__init__(name="decoder")
        self.rate = config.transformer_dropout_embeddings
        self.positions = config.transformer_positions
        with keras.name_scope(self.name):
            self.embedding = shared or _embedding(words, config, of_target=True)
            names = [f"layer_{i + 1}" for i in range(config.transformer_dec_depth)]
            self.stack = [TransformerLayer(config, name, reads_source=True) for name in names]
            self.final_norm = _final_norm(config)
        self.output_kernel = self.output_bias = None
        if not config.tie_decoder_embeddings:
            glorot = keras.initializers.GlorotUniform()
            self.output_kernel = self._matrix("output_kernel", words, config.state_size, glorot)
        if config.transformer_output_bias:
            self.output_bias = self._vector("output_bias", words)
        self.padding = config.transformer_padding

    def init_decoder(self, context: tf.Tensor, bias: tf.Tensor, forward: ForwardPass) -> Memory:
        """Returns the memory of the context `[batch * source_time, units]`."""
        batch, _, _, time = tf.unstack(tf.shape(bias))
        attentions = [layer.cross_attention for layer in self.stack]
        source = [
            each.project(context, [batch, time], each.projections[1:], forward)
            for each in attentions
        ]
        return Memory([KeysAndValues.of(*each) for each in source], bias, [None] * len(source))

    def attention_weights(self, words: tf.Tensor, memory: Memory, layer: int) -> tf.Tensor:
        """Returns how much the word after each of `words` attends to each source word in a layer,
        counted from 1, `[batch, time, source_time]`.
        """
        sizes = tf.unstack(tf.shape(words))
        bias = future_bias(sizes[1])
        forward = ForwardPass()
        x = _embed(words, self.embedding.rows, 0, self.positions)
        for each, source in zip(self.stack[: layer - 1], memory.source, strict=False):
            own = each.attention.projections
            x, _ = each(x, sizes, bias, own, source, memory.bias, forward=forward)
        return self.stack[layer - 1].source_weights(
            x, sizes, bias, memory.source[layer - 1], memory.bias
        )

    def call(self, words: tf.Tensor, *, memory: Memory, forward: ForwardPass) -> tf.Tensor:
        """Returns the input of the output layer for the next words, `[batch, time, units]`."""
        sizes = tf.unstack(tf.shape(words))
        x = _embed(words, self.embedding.rows, 0, self.positions)
        x = drop(x, forward.draw(self.rate, tf.shape(x)))
        projections = [layer.attention.projections for layer in self.stack]
        x, _ = self._run(x, sizes, future_bias(sizes[1]), memory, projections, forward)
        return tf.reshape(x, [*sizes, x.shape[-1]])

    def step_weights(self) -> list[tf.Tensor]:
        """Returns the fused projections of each layer: one product for a few rows saves time."""
        return [weight for layer in self.stack for weight in layer.attention.fused()]

    def make_step(
        self, weights: Sequence[tf.Tensor]
    ) -> Callable[[tf.Tensor, State, Memory], tuple[tf.Tensor, State, Memory]]:
        """Returns the function that maps the last words `[rows]` to the input of the output layer
        and what follows.
        """
        size = len(weights) // len(self.stack)
        projections = [[tuple(weights[i : i + size])] for i in range(0, len(weights), size)]

        def step(words, state, memory):
            sentences = tf.shape(memory.bias)[0]
            hypotheses = tf.shape(words)[0] // tf.maximum(sentences, 1)
            # Round up, because the first word may have had fewer hypotheses.
            time = -(-tf.shape(state)[1] // tf.maximum(hypotheses, 1))
            x = _embed(words[:, tf.newaxis], self.embedding.rows, time, self.positions)
            state = tf.concat([state, tf.tile(others_bias(hypotheses), [sentences, 1])], 1)
            bias = tf.reshape(state, [sentences, 1, hypotheses, tf.shape(state)[1]])
            hidden, memory = self._run(
                x, [sentences, hypotheses], bias, memory, projections, ForwardPass()
            )
            return hidden, state, memory

        return step

    def _run(
        self, x, sizes, bias, memory: Memory, projections, forward: ForwardPass
    ) -> tuple[tf.Tensor, Memory]:
        """Returns the output of the layers, shaped as `x`, and the memory with the words of `x`."""
        words = []
        for layer, own, source, past in zip(
            self.stack, projections, memory.source, memory.words, strict=True
        ):
            x, after = layer(x, sizes, bias, own, source, memory.bias, past, forward=forward)
            words.append(after)
        return self.final_norm(x), memory._replace(words=words)

    @property
    def output_layer(self) -> tuple[tf.Tensor, ...]:
        """The table of the output layer, `[words, units]`, and perhaps its bias, `[words]`."""
        table = self.embedding.rows if self.output_kernel is None else self.output_kernel.value
        if self.output_bias is None:
            return (table,)
        bias = self.output_bias.value
        return table, without_last_gradients(bias, self.padding) if self.padding else bias


class Transformer(EncoderDecoder):
    """The Transformer; a `contract.TranslationModel`.

    Reference: Vaswani et al. (2017), arXiv:1706.03762.
    """

    _encoder = Encoder
    _decoder = Decoder

    def __init__(self, config: Any, source_words: int, target_words: int):
        padding = config.transformer_padding
        source_words += padding * config.tie_encoder_decoder_embeddings
        super().__init__(config, source_words, target_words + padding)
        self.attention_layers = config.transformer_dec_depth
        self.first_word = target_words + padding - 1 if padding else FIRST_WORD
        last_but_one = max(config.transformer_dec_depth - 1, 1)
        self._alignment_layer = config.transformer_alignment_layer or last_but_one

    def _hidden(self, source, source_mask, target, forward: ForwardPass) -> tf.Tensor:
        memory = self._init_decoder(source, source_mask, forward)
        return self.decoder(self._previous(target), memory=memory, forward=forward)

    def attention(self, source, source_mask, target, layer: int | None = None) -> tf.Tensor:
        """Returns the attention weights of every target word in a layer, the mean of its heads,
        `[batch, target_time, source_time]`.

        Reference: Garg et al. (2019), arXiv:1909.02074, on the layer.
        """
        memory = self._init_decoder(source, source_mask, ForwardPass())
        layer = min(layer or self._alignment_layer, self.attention_layers)
        return self.decoder.attention_weights(self._previous(target), memory, layer)

    def _init_decoder(self, source, source_mask, forward: ForwardPass) -> Memory:
        bias = padding_bias(tf.convert_to_tensor(source_mask))
        return self.decoder.init_decoder(self.encoder(source, bias, forward=forward), bias, forward)

    def encode(self, source, source_mask) -> tuple[State, Memory]:
        memory = self._init_decoder(source, source_mask, ForwardPass())
        batch = tf.shape(source)[0]
        heads = self.decoder.stack[0].attention.heads
        units = self.decoder.stack[0].attention.units // heads
        none = KeysAndValues(
            _growing(tf.zeros([batch, heads, units, 0]), [None, heads, units, None]),
            _growing(tf.zeros([batch, heads, 0, units]), [None, heads, None, units]),
        )
        words = [none for _ in memory.source]
        return _growing(tf.zeros([batch, 0]), [None, None]), memory._replace(words=words)

    @staticmethod
    def _smoothed_costs(logits: tf.Tensor, words: tf.Tensor, smoothing: float) -> tf.Tensor:
        """Returns the cost of each word, `[...]`, minus the entropy of the smoothed labels: the
        least cost is 0.

        As in Nematus, the probability that smoothing takes from the right word goes only to the
        other words.
        """
        if not smoothing:
            return word_costs(logits, words)
        others = logits.shape[-1] - 1
        entropy = -(1 - smoothing) * math.log(1 - smoothing) - smoothing * math.log(
            smoothing / others
        )
        return word_costs(logits, words, smoothing * (others + 1) / others) - entropy

    def step_weights(self) -> list[tf.Tensor]:
        table, *others = super().step_weights()
        return [table[:, : table.shape[1] - self.decoder.padding], *others]

    def _next_words(self, hidden, table, rows, bias=None) -> NextWords:
        """Returns the next words. Padding counts in the normalizers and is no next word."""
        words = table.shape[1]
        if words == rows.shape[0]:
            return super()._next_words(hidden, table, rows, bias)
        bias = tf.zeros([rows.shape[0]]) if bias is None else bias
        logits = affine(hidden, table, bias[:words])
        padding = affine(hidden, tf.transpose(rows[words:]), bias[words:])
        parts = [log_normalizers(logits), tf.reduce_logsumexp(padding, -1)]
        return NextWords(logits, tf.reduce_logsumexp(parts, 0))

    def ctranslate2_spec(self, longest: int):
        from .ctranslate2_spec import build_spec  # an optional dependency

        return build_spec(self, longest)


def _growing(x: tf.Tensor, shape: list[int | None]) -> tf.Tensor:
    """Returns a tensor with this static shape, whose unknown sizes a loop may change."""
    return tf.raw_ops.PlaceholderWithDefault(input=x, shape=shape)


def _embedding(words: int, config: Any, *, of_target: bool) -> Embedding:
    # Multiplied by the root of their size, these begin with the scale of the positions. Glorot's
    # would be much smaller.
    normal = keras.initializers.RandomNormal(stddev=config.state_size**-0.5)
    padding = config.transformer_padding if of_target else 0
    return Embedding(words, config.state_size, "embedding", normal, padding=padding)


def _final_norm(config: Any) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns the norm of a stack's output: none for `post`, where the last layer normalizes."""
    if config.transformer_norm_position == "post":
        return tf.identity  # not an Identity layer: the kind `none` puts one where a norm would be
    return build_normalization(config.normalization, config.state_size, "final_norm")


def _embed(ids: tf.Tensor, table: tf.Tensor, first: tf.Tensor | int, positions: str) -> tf.Tensor:
    """Returns embeddings times the root of their size plus positions, `[batch * time, units]`."""
    x = _look_up(table, ids)
    x = x * x.shape[-1] ** 0.5 + sinusoids(
        first, ids.shape[1] or tf.shape(ids)[1], x.shape[-1], positions
    )
    return tf.reshape(x, [-1, x.shape[-1]])


@tf.custom_gradient
def _look_up(table: tf.Tensor, ids: tf.Tensor):
    """Returns rows of a table, with a dense gradient.

    So the norm that clipping uses counts each word once, as in Nematus master, not each of its
    occurrences.
    """

    def gradient(d_rows):
        d_rows = tf.reshape(d_rows, [-1, table.shape[-1]])
        return tf.math.unsorted_segment_sum(d_rows, tf.reshape(ids, [-1]), table.shape[0]), None

    return tf.gather(table, ids), gradient
