"""The RNN model: bidirectional GRU encoder, conditional GRU decoder with additive attention, deep output.

It equals the RNN model of Nematus master; at depth one, that of v0.3 too.
"""

import tensorflow as tf

from .encoder_decoder import EncoderDecoder
from .forward_pass import ForwardPass
from .rnnsearch_layers import SHALLOW, Decoder, Depths, Encoder, Memory, Rates, Sizes

NO_WORD = -1  # the id before the first word; its embedding is zero


class RNNSearch(EncoderDecoder):
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
        super().__init__("rnnsearch", training_dtype)
        sizes = Sizes(embedding_size, state_size, normalization, rates, depths)
        self.encoder = Encoder(source_words, sizes)
        shared = self.encoder.embedding if tie_encoder_decoder_embeddings else None
        self.decoder = Decoder(target_words, sizes, output_activation, tie_decoder_embeddings, shared)
        self.built = True

    def _hidden(self, source, source_mask, target, forward: ForwardPass) -> tf.Tensor:
        """Returns the input of the output layer for every target word, `[batch, target_time, embedding]`."""
        state, memory = self._remember(source, source_mask, forward)
        return self.decoder(self._previous(target), state, memory=memory, forward=forward)

    def attention(self, source, source_mask, target) -> tf.Tensor:
        """Returns the attention weights of every target word, `[batch, target_time, source_time]`."""
        state, memory = self._remember(source, source_mask, ForwardPass())
        return self.decoder.attention_weights(self._previous(target), state, memory)

    def encode(self, source, source_mask) -> tuple[tf.Tensor, Memory]:
        """Returns the first states of all levels of the decoder, `[batch, levels * units]`, and its memory."""
        state, memory = self._remember(source, source_mask, ForwardPass())
        return tf.tile(state, [1, self.decoder.depths.decoder]), memory

    def _remember(self, source, source_mask, forward: ForwardPass) -> tuple[tf.Tensor, Memory]:
        context = self.encoder(source, source_mask, forward=forward)
        return self.decoder.remember(context, source_mask, forward)


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
