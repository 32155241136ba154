"""Computes costs and decoding steps from the input of the output layer, for any architecture."""

from typing import Any

import keras
import tensorflow as tf

from .contract import DecodeStep, Memory, NextWords, State
from .costs import log_normalizers, sum_in_parts, word_costs
from .forward_pass import ForwardPass, affine, over_rows


class EncoderDecoder(keras.Model):
    """Implements `contract.TranslationModel`, which documents the shapes, for a decoder that ends
    with a table of words.

    A subclass has `encode`, `first_word`, `_hidden`, which returns the input of the output layer
    for every target word, and the classes of its parts, `_encoder` and `_decoder`. A decoder has
    `make_step`, which returns the same for a step, the `step_weights` that this takes, and
    `output_layer`, the table `[words, units]` and perhaps a bias.
    """

    first_word: int
    _smoothed_costs = staticmethod(word_costs)

    def __init__(self, config: Any, source_words: int, target_words: int):
        super().__init__(name=type(self).__name__.lower())
        # `total_cost` rounds the factors of products to it.
        self._training_dtype = config.dtype.removeprefix("mixed_")
        self.encoder = self._encoder(source_words, config)
        shared = self.encoder.embedding if config.tie_encoder_decoder_embeddings else None
        self.decoder = self._decoder(target_words, config, shared)
        self.built = True

    @property
    def word_tables(self) -> dict[str, list[keras.Variable]]:
        """The weights that have an entry for each word of a side."""
        target = self.decoder.embedding.table, self.decoder.output_kernel, self.decoder.output_bias
        return {
            "source": [self.encoder.embedding.table],
            "target": [each for each in target if each is not None],
        }

    def call(self, source, source_mask, target) -> tf.Tensor:
        """Returns the logits of every target word, `[batch, target_time, target_words]`."""
        table, *bias = self.decoder.output_layer
        hidden = self._hidden(source, source_mask, target, ForwardPass())
        return over_rows(lambda rows: affine(rows, tf.transpose(table), *bias), hidden)

    def costs(self, source, source_mask, target, target_mask) -> tf.Tensor:
        return tf.reduce_sum(self.word_costs(source, source_mask, target, target_mask), -1)

    def word_costs(self, source, source_mask, target, target_mask) -> tf.Tensor:
        return word_costs(self(source, source_mask, target), target) * target_mask

    def total_cost(
        self,
        source,
        source_mask,
        target,
        target_mask,
        *,
        label_smoothing: float = 0.0,
        dropout_seed=None,
    ) -> tf.Tensor:
        """Returns the sum of `costs`.

        The logits of only one part of the words are in memory at a time.
        """
        forward = ForwardPass(dropout_seed, self._training_dtype)
        hidden = self._hidden(source, source_mask, target, forward)

        def cost(rows, words, mask, table, *bias):
            logits = forward.affine(rows, tf.transpose(table), *bias)
            return tf.reduce_sum(self._smoothed_costs(logits, words, label_smoothing) * mask)

        rows = tuple(tf.reshape(x, [-1, *x.shape[2:]]) for x in (hidden, target, target_mask))
        return sum_in_parts(cost, rows, self.decoder.output_layer)

    def step_weights(self) -> list[tf.Tensor]:
        """Returns the table of the output layer in the order in which a step reads it, `[units,
        words]`, and what the decoder's step takes.
        """
        return [tf.transpose(self.decoder.output_layer[0]), *self.decoder.step_weights()]

    def make_step(self, weights: list[tf.Tensor] | None = None) -> DecodeStep:
        table, *of_decoder = weights or self.step_weights()
        decode = self.decoder.make_step(of_decoder)
        output_layer = self.decoder.output_layer

        def step(words, state: State, memory: Memory) -> tuple[NextWords, State, Memory]:
            hidden, state, memory = decode(tf.convert_to_tensor(words), state, memory)
            return self._next_words(hidden, table, *output_layer), state, memory

        return step

    def _next_words(
        self, hidden: tf.Tensor, table: tf.Tensor, _: tf.Tensor, bias: tf.Tensor | None = None
    ) -> NextWords:
        """Returns the next words, given the input of the output layer, `[rows, units]`, the first
        of `step_weights` and the output layer.
        """
        logits = affine(hidden, table, bias)
        return NextWords(logits, log_normalizers(logits))

    def _previous(self, target: tf.Tensor) -> tf.Tensor:
        """Returns the word before each of `target` `[batch, target_time]`."""
        return tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=self.first_word)
