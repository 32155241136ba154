"""The RNN model: bidirectional GRU encoder, conditional GRU decoder with additive attention, deep output.

It equals the RNN model of Nematus master; at depth one, that of v0.3 too.
"""

import tensorflow as tf

from .encoder_decoder import EncoderDecoder
from .forward_pass import ForwardPass
from .rnnsearch_layers import Decoder, Encoder, Memory

NO_WORD = -1  # the id before the first word; its embedding is zero


class RNNSearch(EncoderDecoder):
    """The RNN model; a `contract.TranslationModel`.

    Reference: Bahdanau et al. (2015), arXiv:1409.0473; Sennrich et al. (2017), arXiv:1703.04357.
    """

    first_word = NO_WORD
    _encoder, _decoder = Encoder, Decoder

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
        return tf.tile(state, [1, self.decoder.levels]), memory

    def _remember(self, source, source_mask, forward: ForwardPass) -> tuple[tf.Tensor, Memory]:
        context = self.encoder(source, source_mask, forward=forward)
        return self.decoder.remember(context, source_mask, forward)
