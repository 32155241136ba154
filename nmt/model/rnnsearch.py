"""Defines the RNN model of Nematus: bidirectional GRUs, conditional GRU, deep output.

At depth one it is that of v0.3.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from .additive_attention import AdditiveAttention
from .encoder_decoder import EncoderDecoder
from .forward_pass import Affine, ForwardPass, affine, drop
from .gru import NO_MASKS, GRUStep, run_gru
from .layers import Block, Embedding, PReLU, Projection
from .recurrence import scan

NO_WORD = -1  # the id before the first word; its embedding is zero


class Memory(NamedTuple):
    """The source sentences as the decoder sees them."""

    context: tf.Tensor  # [batch, source_time, 2 * units], zero on padding
    # [batch, source_time, 2 * units], the term of the context in the attention energies.
    projected: tf.Tensor
    mask: tf.Tensor  # [batch, source_time]


class Encoder(Block):
    """Maps source ids `[batch, source_time]` to their context `[batch, source_time, 2 * units]`,
    zero on padding.

    Two stacks of GRUs read the words, one forwards and one backwards. In each stack the direction
    alternates from level to level, and every level but the first adds its states to its inputs.

    Reference: Zhou et al. (2016), arXiv:1606.04199; Miceli Barone et al. (2017), arXiv:1707.07631.
    """

    def __init__(self, words: int, config: Any):
        super().__init__(name="encoder")
        self._config = config
        units = config.state_size

        def stack(name: str) -> list[GRUStep]:
            sizes = [config.embedding_size] + [units] * (config.rnn_enc_depth - 1)
            more = config.rnn_enc_transition_depth - 1
            return [
                GRUStep(size, units, config.normalization, f"{name}{level or ''}", transitions=more)
                for level, size in enumerate(sizes)
            ]

        with keras.name_scope(self.name):
            self.embedding = Embedding(words, config.embedding_size, "embedding")
            self.forward_stack = stack("forward")
            self.backward_stack = stack("backward")

    def call(self, source: tf.Tensor, mask: tf.Tensor, *, forward: ForwardPass) -> tf.Tensor:
        batch, time = tf.unstack(tf.shape(source))
        words = drop(
            self.embedding(source), forward.draw(self._config.rnn_dropout_source, [batch, time, 1])
        )
        states = [
            self._run_stack(self.forward_stack, words, mask, forward, reverse=False),
            self._run_stack(self.backward_stack, words, mask, forward, reverse=True),
        ]
        # As in Nematus, those that end left to right come first.
        if len(self.forward_stack) % 2 == 0:
            states.reverse()
        return tf.concat(states, -1)

    def _run_stack(
        self, stack: list[GRUStep], words, mask, forward: ForwardPass, *, reverse: bool
    ) -> tf.Tensor:
        first, *others = stack
        hidden = self._config.rnn_dropout_hidden
        rates = (self._config.rnn_dropout_embedding, hidden)
        initial = tf.zeros([tf.shape(words)[0], first.units], words.dtype)
        states = run_gru(first, words, initial, forward, rates, mask, reverse)
        for gru in others:
            reverse = not reverse
            states += run_gru(gru, states, initial, forward, (hidden, hidden), mask, reverse)
        return states


class Decoder(Block):
    """The conditional GRU: a GRU on the previous word, attention, a second GRU on the attended
    context, deep output.

    Each further level is a GRU that reads the states of the level below and adds its own states to
    them. All levels begin with the same state.

    Reference: Sennrich et al. (2017), arXiv:1703.04357, section 3; Miceli Barone et al. (2017),
    arXiv:1707.07631.
    """

    def __init__(self, words: int, config: Any, shared: Embedding | None):
        super().__init__(name="decoder")
        embedding = config.embedding_size
        units = config.state_size
        normalization = config.normalization
        self._config = config
        self.units = units
        self.levels = config.rnn_dec_depth
        with keras.name_scope(self.name):
            self.initial_state = Projection(2 * units, units, normalization, "initial_state")
            self.embedding = shared or Embedding(words, embedding, "embedding")
            self.word_gru = GRUStep(embedding, units, normalization, name="word_gru")
            self.attention = AdditiveAttention(2 * units, units, normalization, "attention")
            gru = functools.partial(
                GRUStep, units=units, normalization=normalization, bias_on_state=True
            )
            self.context_gru = gru(
                2 * units, transitions=config.rnn_dec_base_transition_depth - 2, name="context_gru"
            )
            inputs = 3 * units if config.rnn_dec_deep_context else units
            more = config.rnn_dec_high_transition_depth - 1
            self.high_grus = [
                gru(inputs, transitions=more, name=f"high{i}") for i in range(self.levels - 1)
            ]
            self.from_word = Projection(embedding, embedding, normalization, "from_word")
            self.from_state = Projection(units, embedding, normalization, "from_state")
            self.from_context = Projection(2 * units, embedding, normalization, "from_context")
            if config.output_hidden_activation == "prelu":
                self.activation = PReLU(embedding, "output_activation")
            else:
                self.activation = keras.activations.get(config.output_hidden_activation)
        self.output_bias = self._vector("output_bias", words)
        self.output_kernel = None
        if not config.tie_decoder_embeddings:
            small = keras.initializers.RandomNormal(stddev=0.01)
            self.output_kernel = self._matrix("output_kernel", words, embedding, small)

    def init_decoder(
        self, context: tf.Tensor, mask: tf.Tensor, forward: ForwardPass
    ) -> tuple[tf.Tensor, Memory]:
        """Returns the first state of each level `[batch, units]` and the memory."""
        batch = tf.shape(context)[0]
        width = context.shape[-1]
        mean = tf.reduce_sum(context, 1) / tf.reduce_sum(mask, 1, keepdims=True)
        mean = drop(mean, forward.draw(self._config.rnn_dropout_hidden, [batch, width]))
        state = tf.tanh(self.initial_state(mean, product=forward.affine))
        dropped = drop(context, forward.draw(self._config.rnn_dropout_hidden, [batch, width]))
        return state, Memory(context, self.attention.project_context(dropped, forward.affine), mask)

    def call(
        self, words: tf.Tensor, state: tf.Tensor, *, memory: Memory, forward: ForwardPass
    ) -> tf.Tensor:
        """Returns the input of the output layer for the next words, `[batch, time, embedding]`."""
        batch, time = tf.unstack(tf.shape(words))
        embedded = self.embedding(words)
        embedded = drop(embedded, forward.draw(self._config.rnn_dropout_target, [batch, time, 1]))
        hidden = self._config.rnn_dropout_hidden
        word_masks = self.word_gru.masks(forward, batch, self._config.rnn_dropout_embedding, hidden)
        context_masks = self.context_gru.masks(forward, batch, hidden, hidden)
        masks = (word_masks, forward.draw(hidden, [batch, self.units]), context_masks)
        projected = self.word_gru.project_input(embedded, word_masks, forward.affine)

        def step(carried, x, constants, affine):
            def attend(query):
                return affine(
                    self.attention.attention_weights(query, constants[0], memory.mask, affine),
                    memory.context,
                )

            return self._recur(carried[0], x, attend, masks, affine)

        initial = (state, tf.zeros_like(memory.context[:, 0]))
        matrices = [
            *self.word_gru.state_matrices,
            *self.attention.matrices(memory.context),
            *self.context_gru.input_matrices,
            *self.context_gru.state_matrices,
        ]
        states, attended = scan(
            step, projected, initial, matrices, [memory.projected], dtype=forward.dtype
        )
        for gru in self.high_grus:
            below = self._high_input(states, attended)
            states += run_gru(gru, below, state, forward, (hidden, hidden))
        return self._deep_output(embedded, states, attended, forward)

    def _high_input(self, below, attended) -> tf.Tensor:
        """Returns the input of a further level, for one time step or for all of them."""
        return tf.concat([below, attended], -1) if self._config.rnn_dec_deep_context else below

    def step(
        self, words: tf.Tensor, state: tf.Tensor, memory: Memory
    ) -> tuple[tf.Tensor, tf.Tensor, Memory]:
        """Returns the input of the output layer for the word after `words` `[rows]`, the next state
        and the memory.

        A state holds those of all levels side by side. Each sentence of the memory has equally many
        rows.
        """
        embedded = self.embedding(words)
        base, *high = tf.split(state, self.levels, -1)
        projected = self.word_gru.project_input(embedded)
        base, attended = self._recur(
            base, projected, lambda query: self.attention.attend(query, *memory)
        )
        output = base
        states = [base]
        for gru, own in zip(self.high_grus, high, strict=True):
            states.append(gru.step(own, gru.project_input(self._high_input(output, attended))))
            output += states[-1]
        return (
            self._deep_output(embedded, output, attended, ForwardPass()),
            tf.concat(states, -1),
            memory,
        )

    def step_weights(self) -> list[tf.Tensor]:
        return []  # a step reads its matrices as they are

    def make_step(self, _: list[tf.Tensor]) -> Callable:
        return self.step

    def attention_weights(self, words: tf.Tensor, state: tf.Tensor, memory: Memory) -> tf.Tensor:
        """Returns the attention weights of the next words, `[batch, time, source_time]`."""

        def step(carried, x, *_):
            weights = []

            def attend(query):
                weights.append(
                    self.attention.attention_weights(query, memory.projected, memory.mask)
                )
                return affine(weights[0], memory.context)

            state, _ = self._recur(carried[0], x, attend)
            return state, weights[0]

        projected = self.word_gru.project_input(self.embedding(words))
        return scan(step, projected, (state, tf.zeros_like(memory.mask)))[1]

    def _recur(
        self,
        state,
        projected_word,
        attend: Callable,
        masks=(NO_MASKS, None, NO_MASKS),
        product: Affine = affine,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs a time step of the first level; returns the next state and the attended context."""
        word_masks, query_mask, context_masks = masks
        state = self.word_gru.step(state, projected_word, word_masks, product)
        attended = attend(drop(state, query_mask))
        projected_context = self.context_gru.project_input(attended, context_masks, product)
        return self.context_gru.step(state, projected_context, context_masks, product), attended

    @property
    def output_layer(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The table `[words, embedding]` and the bias `[words]` of the output layer."""
        table = self.embedding.table if self.output_kernel is None else self.output_kernel
        return table.value, self.output_bias.value

    def _deep_output(self, embedded, states, attended, forward: ForwardPass) -> tf.Tensor:
        """Returns the input of the output layer, for one time step or for all of them."""

        def dropped(x, rate):
            return drop(x, forward.draw(rate, [tf.shape(x)[0], x.shape[-1]]))

        hidden = self.activation(
            self.from_word(
                dropped(embedded, self._config.rnn_dropout_embedding), product=forward.affine
            )
            + self.from_state(
                dropped(states, self._config.rnn_dropout_hidden), product=forward.affine
            )
            + self.from_context(
                dropped(attended, self._config.rnn_dropout_hidden), product=forward.affine
            )
        )
        return dropped(hidden, self._config.rnn_dropout_embedding)


class RNNSearch(EncoderDecoder):
    """The RNN model; a `contract.TranslationModel`.

    Reference: Bahdanau et al. (2015), arXiv:1409.0473; Sennrich et al. (2017), arXiv:1703.04357.
    """

    first_word = NO_WORD
    _encoder = Encoder
    _decoder = Decoder

    def _hidden(self, source, source_mask, target, forward: ForwardPass) -> tf.Tensor:
        state, memory = self._init_decoder(source, source_mask, forward)
        return self.decoder(self._previous(target), state, memory=memory, forward=forward)

    def attention(self, source, source_mask, target) -> tf.Tensor:
        """Returns the attention weights of target words, `[batch, target_time, source_time]`."""
        state, memory = self._init_decoder(source, source_mask, ForwardPass())
        return self.decoder.attention_weights(self._previous(target), state, memory)

    def encode(self, source, source_mask) -> tuple[tf.Tensor, Memory]:
        """Returns the first states of all levels, `[batch, levels * units]`, and the memory."""
        state, memory = self._init_decoder(source, source_mask, ForwardPass())
        return tf.tile(state, [1, self.decoder.levels]), memory

    def _init_decoder(self, source, source_mask, forward: ForwardPass) -> tuple[tf.Tensor, Memory]:
        context = self.encoder(source, source_mask, forward=forward)
        return self.decoder.init_decoder(context, source_mask, forward)
