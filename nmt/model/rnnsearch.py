"""The RNN model: bidirectional GRU encoder, conditional GRU decoder with additive attention, deep output.

It equals the RNN model of Nematus master; at depth one, that of v0.3 too.
"""

import keras
import tensorflow as tf

from .affine import affine
from .contract import DecodeStep, NextWords
from .costs import log_normalizers, sum_in_parts, word_costs
from .forward_pass import ForwardPass
from .rnnsearch_layers import SHALLOW, Decoder, Depths, Encoder, Memory, Rates, Sizes, output_logits

NO_WORD = -1  # the id before the first word; its embedding is zero


class RNNSearch(keras.Model):
    """The RNN model; a `contract.TranslationModel`.

    Args:
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.
        embedding_size: Size of the word embeddings of either language.
        state_size: Size of each GRU.
        normalization: One of `normalization.KINDS`.
        rates: Dropout rates, used where a dropout seed is given.
        depths: Levels and transitions of encoder and decoder.
        output_activation: `tanh`, `relu`, `prelu` or `linear`, before the output layer.
        tie_decoder_embeddings: The output matrix is the target embedding.
        tie_encoder_decoder_embeddings: The target embedding is the source embedding.
        training_dtype: `float32`, `bfloat16` or `float16`: `total_cost` rounds the factors of matrix products to it.

    Reference: Bahdanau et al. (2015), arXiv:1409.0473; Sennrich et al. (2017), arXiv:1703.04357.
    """

    first_word = NO_WORD

    def __init__(
        self,
        source_words: int,
        target_words: int,
        *,
        embedding_size: int,
        state_size: int,
        normalization: str,
        rates: Rates,
        depths: Depths = SHALLOW,
        output_activation: str = "tanh",
        tie_decoder_embeddings: bool = False,
        tie_encoder_decoder_embeddings: bool = False,
        training_dtype: str = "float32",
    ):
        super().__init__(name="rnnsearch")
        self._training_dtype = training_dtype
        sizes = Sizes(embedding_size, state_size, normalization, rates, depths)
        self.encoder = Encoder(source_words, sizes)
        shared = self.encoder.embedding if tie_encoder_decoder_embeddings else None
        self.decoder = Decoder(target_words, sizes, output_activation, tie_decoder_embeddings, shared)
        self.built = True

    def call(self, source, source_mask, target) -> tf.Tensor:
        """Returns the logits of every target word, `[batch, target_time, target_words]`."""
        return self.decoder.logits(self._hidden(source, source_mask, target, ForwardPass()))

    def _hidden(self, source, source_mask, target, forward: ForwardPass) -> tf.Tensor:
        """Returns the input of the output layer for every target word, `[batch, target_time, embedding]`."""
        state, memory = self._remember(source, source_mask, forward)
        return self.decoder(_previous(target), state, memory=memory, forward=forward)

    def costs(self, source, source_mask, target, target_mask) -> tf.Tensor:
        """Returns the cost of each target sentence, `[batch]`."""
        logits = self(source, source_mask, target)
        return tf.reduce_sum(word_costs(logits, target) * target_mask, -1)

    def total_cost(
        self, source, source_mask, target, target_mask, *, label_smoothing: float = 0.0, dropout_seed=None
    ) -> tf.Tensor:
        """Returns the sum of `costs`. The logits of only one part of the words are in memory at a time."""
        forward = ForwardPass(dropout_seed, self._training_dtype)
        hidden = self._hidden(source, source_mask, target, forward)

        def cost(rows, words, mask, table, bias):
            logits = output_logits(rows, table, bias, forward.affine)
            return tf.reduce_sum(word_costs(logits, words, label_smoothing) * mask)

        rows = tuple(tf.reshape(x, [-1, *x.shape[2:]]) for x in (hidden, target, target_mask))
        return sum_in_parts(cost, rows, self.decoder.output_layer, forward.dtype)

    def attention(self, source, source_mask, target) -> tf.Tensor:
        """Returns the attention weights of every target word, `[batch, target_time, source_time]`."""
        state, memory = self._remember(source, source_mask, ForwardPass())
        return self.decoder.attention_weights(_previous(target), state, memory)

    def encode(self, source, source_mask) -> tuple[tf.Tensor, Memory]:
        """Returns the first states of all levels of the decoder, `[batch, levels * units]`, and its memory."""
        state, memory = self._remember(source, source_mask, ForwardPass())
        return tf.tile(state, [1, self.decoder.depths.decoder]), memory

    def _remember(self, source, source_mask, forward: ForwardPass) -> tuple[tf.Tensor, Memory]:
        context = self.encoder(source, source_mask, forward=forward)
        return self.decoder.remember(context, source_mask, forward)

    def make_step(self) -> DecodeStep:
        """Returns the function of a decoding step, which returns the memory unchanged."""
        table, bias = self.decoder.output_layer
        table = tf.transpose(table)

        def step(words, state, memory: Memory) -> tuple[NextWords, tf.Tensor, Memory]:
            hidden, state = self.decoder.step(words, state, memory)
            logits = affine(hidden, table, bias)
            return NextWords(logits, log_normalizers(logits)), state, memory

        return step


def _previous(target: tf.Tensor) -> tf.Tensor:
    """Returns the word before each of `target` `[batch, target_time]`."""
    return tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=NO_WORD)


def build(config, source_words: int, target_words: int) -> RNNSearch:
    """Builds the model of a configuration."""
    return RNNSearch(
        source_words,
        target_words,
        embedding_size=config.embedding_size,
        state_size=config.state_size,
        normalization=config.layer_normalization_type,
        rates=Rates(
            config.rnn_dropout_embedding,
            config.rnn_dropout_hidden,
            config.rnn_dropout_source,
            config.rnn_dropout_target,
        ),
        depths=Depths(
            config.rnn_enc_depth,
            config.rnn_enc_transition_depth,
            config.rnn_dec_depth,
            config.rnn_dec_base_transition_depth,
            config.rnn_dec_high_transition_depth,
            config.rnn_dec_deep_context,
        ),
        output_activation=config.output_hidden_activation,
        tie_decoder_embeddings=config.tie_decoder_embeddings,
        tie_encoder_decoder_embeddings=config.tie_encoder_decoder_embeddings,
        training_dtype=config.dtype.removeprefix("mixed_"),
    )
