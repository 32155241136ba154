"""The encoder and the decoder of the RNN model."""

from typing import NamedTuple

import keras
import tensorflow as tf

from .additive_attention import AdditiveAttention
from .affine import affine, over_rows
from .dropout import DropoutMasks, drop
from .gru import GRUMasks, GRUStep
from .layers import Block, Embedding, PReLU, Projection
from .recurrence import scan


class Rates(NamedTuple):
    """Dropout rates of embedding units, hidden units, and whole source and target words."""

    embedding: float = 0.0
    hidden: float = 0.0
    source: float = 0.0
    target: float = 0.0


class Memory(NamedTuple):
    """The source sentences as the decoder sees them."""

    context: tf.Tensor  # [batch, source_time, 2 * units], zero on padding
    projected: tf.Tensor  # [batch, source_time, 2 * units], the term of the context in the attention energies
    mask: tf.Tensor  # [batch, source_time]


class Encoder(Block):
    """Maps source ids `[batch, source_time]` to their context `[batch, source_time, 2 * units]`, zero on padding."""

    def __init__(self, words: int, embedding: int, units: int, normalization: str, rates: Rates):
        super().__init__(name="encoder")
        self.rates = rates
        self.units = units
        with keras.name_scope(self.name):
            self.embedding = Embedding(words, embedding, "embedding")
            self.forward_gru = GRUStep(embedding, units, normalization, name="forward")
            self.backward_gru = GRUStep(embedding, units, normalization, name="backward")

    def call(self, source: tf.Tensor, mask: tf.Tensor, *, dropout: DropoutMasks) -> tf.Tensor:
        batch, time = tf.unstack(tf.shape(source))
        words = drop(self.embedding(source), dropout.draw(self.rates.source, [batch, time, 1]))
        states = [
            self._run(self.forward_gru, words, mask, dropout),
            self._run(self.backward_gru, words, mask, dropout, reverse=True),
        ]
        return tf.concat(states, -1)

    def _run(self, gru: GRUStep, words, mask, dropout: DropoutMasks, reverse: bool = False) -> tf.Tensor:
        """Returns all states, zero on padding."""
        batch = tf.shape(words)[0]
        masks = gru.masks(dropout, batch, self.rates.embedding, self.rates.hidden)
        initial = tf.zeros([batch, self.units], words.dtype)

        def step(state, inputs, _):
            x, keep = inputs
            return gru.step(state, x, masks) * keep

        sequences = (gru.project_input(words, masks), mask[..., tf.newaxis])
        return scan(step, sequences, initial, gru.state_matrices, reverse=reverse)


class Decoder(Block):
    """The conditional GRU: a GRU on the previous word, attention, a second GRU on the attended context, deep output.

    Reference: Sennrich et al. (2017), arXiv:1703.04357, section 3.
    """

    def __init__(
        self,
        words: int,
        embedding: int,
        units: int,
        normalization: str,
        rates: Rates,
        activation: str,
        tied: bool,
        shared: Embedding | None,
    ):
        super().__init__(name="decoder")
        self.rates = rates
        self.units = units
        with keras.name_scope(self.name):
            self.initial_state = Projection(2 * units, units, normalization, "initial_state")
            self.embedding = shared or Embedding(words, embedding, "embedding")
            self.word_gru = GRUStep(embedding, units, normalization, name="word_gru")
            self.attention = AdditiveAttention(2 * units, units, normalization, "attention")
            self.context_gru = GRUStep(2 * units, units, normalization, bias_on_state=True, name="context_gru")
            self.from_word = Projection(embedding, embedding, normalization, "from_word")
            self.from_state = Projection(units, embedding, normalization, "from_state")
            self.from_context = Projection(2 * units, embedding, normalization, "from_context")
            name = "output_activation"
            self.activation = (
                PReLU(embedding, name) if activation == "prelu" else keras.layers.Activation(activation, name=name)
            )
            self.activation.build((None, embedding))
        self.output_bias = self.add_weight(shape=(words,), initializer="zeros", name="output_bias")
        self.output_kernel = None
        if not tied:
            self.output_kernel = self.add_weight(
                shape=(words, embedding),
                initializer=keras.initializers.RandomNormal(stddev=0.01),
                name="output_kernel",
            )

    def remember(self, context: tf.Tensor, mask: tf.Tensor, dropout: DropoutMasks) -> tuple[tf.Tensor, Memory]:
        """Returns the first state `[batch, units]`, computed from the mean of the context, and the memory."""
        batch, width = tf.shape(context)[0], context.shape[-1]
        mean = tf.reduce_sum(context, 1) / tf.reduce_sum(mask, 1, keepdims=True)
        mean = drop(mean, dropout.draw(self.rates.hidden, [batch, width]))
        state = tf.tanh(self.initial_state(mean))
        dropped = drop(context, dropout.draw(self.rates.hidden, [batch, width]))
        return state, Memory(context, self.attention.project_context(dropped), mask)

    def call(self, words: tf.Tensor, state: tf.Tensor, *, memory: Memory, dropout: DropoutMasks) -> tf.Tensor:
        """Returns the input of the output layer for the word after each of `words`, `[batch, time, embedding]`."""
        batch, time = tf.unstack(tf.shape(words))
        embedded = self.embedding(words)
        embedded = drop(embedded, dropout.draw(self.rates.target, [batch, time, 1]))
        hidden = self.rates.hidden
        word_masks = self.word_gru.masks(dropout, batch, self.rates.embedding, hidden)
        context_masks = self.context_gru.masks(dropout, batch, hidden, hidden)
        query_mask = dropout.draw(hidden, [batch, self.units])
        projected = self.word_gru.project_input(embedded, word_masks)

        def step(carried, x, constants):
            seen = memory._replace(projected=constants[0])
            return self._recur(carried[0], x, seen, word_masks, context_masks, query_mask)

        initial = (state, tf.zeros_like(memory.context[:, 0]))
        matrices = [
            *self.word_gru.state_matrices,
            *self.attention.matrices(memory.context),
            *self.context_gru.input_matrices,
            *self.context_gru.state_matrices,
        ]
        states, attended = scan(step, projected, initial, matrices, [memory.projected])
        return self._deep_output(embedded, states, attended, dropout)

    def step(self, words: tf.Tensor, state: tf.Tensor, memory: Memory) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the logits `[rows, words]` of the word after `words` `[rows]`, and the next state.

        Each sentence of the memory has equally many rows.
        """
        embedded = self.embedding(words)
        state = self.word_gru.step(state, self.word_gru.project_input(embedded))
        attended = self.attention.attend(state, *memory)
        state = self.context_gru.step(state, self.context_gru.project_input(attended))
        return self.logits(self._deep_output(embedded, state, attended, DropoutMasks())), state

    def attention_weights(self, words: tf.Tensor, state: tf.Tensor, memory: Memory) -> tf.Tensor:
        """Returns the attention weights of the word after each of `words`, `[batch, time, source_time]`."""
        projected = self.word_gru.project_input(self.embedding(words))
        projected = tuple(tf.transpose(x, [1, 0, 2]) for x in projected)  # [time, batch, ...]

        def step(carried, x):
            query = self.word_gru.step(carried[0], x)
            weights = self.attention.shares(query, memory.projected, memory.mask)
            attended = self.context_gru.project_input(affine(weights, memory.context))
            return self.context_gru.step(query, attended), weights

        _, weights = tf.scan(step, projected, (state, tf.zeros_like(memory.mask)))
        return tf.transpose(weights, [1, 0, 2])

    def _recur(
        self,
        state,
        projected_word,
        memory: Memory,
        word_masks: GRUMasks,
        context_masks: GRUMasks,
        query_mask,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs one time step; returns the next state and the attended context."""
        state = self.word_gru.step(state, projected_word, word_masks)
        attended = self.attention.step(drop(state, query_mask), *memory)
        projected_context = self.context_gru.project_input(attended, context_masks)
        return self.context_gru.step(state, projected_context, context_masks), attended

    @property
    def output_layer(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The table `[words, embedding]` and the bias `[words]` of the output layer."""
        table = self.embedding.table if self.output_kernel is None else self.output_kernel
        return table.value, self.output_bias.value

    def logits(self, hidden: tf.Tensor) -> tf.Tensor:
        """Returns the logits `[..., words]` from the result of `call`."""
        return over_rows(lambda rows: output_logits(rows, *self.output_layer), hidden)

    def _deep_output(self, embedded, states, attended, dropout: DropoutMasks) -> tf.Tensor:
        """Returns the input of the output layer, for one time step or for all of them."""

        def dropped(x, rate):
            return drop(x, dropout.draw(rate, [tf.shape(x)[0], x.shape[-1]]))

        hidden = self.activation(
            self.from_word(dropped(embedded, self.rates.embedding))
            + self.from_state(dropped(states, self.rates.hidden))
            + self.from_context(dropped(attended, self.rates.hidden))
        )
        return dropped(hidden, self.rates.embedding)


def output_logits(rows: tf.Tensor, table: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Returns the logits `[..., words]` of `rows` `[..., embedding]`."""
    return affine(rows, tf.transpose(table), bias)
