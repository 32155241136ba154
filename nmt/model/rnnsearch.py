"""The model: bidirectional GRU encoder, conditional GRU decoder with additive attention, deep output.

It follows the RNN model of Nematus v0.3 at depth one. Token id 0 ends a sentence and pads it; a mask is 1 on the words
and on the one end after them.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from .affine import Affine, affine, over_rows
from .costs import sum_in_parts, word_costs
from .layers import (
    NO_MASKS,
    Attention,
    Block,
    DropoutMasks,
    Embedding,
    GRUMasks,
    GRUStep,
    PReLU,
    Projection,
    drop,
)
from .recurrence import scan

NO_WORD = -1  # given as the word before the first; its embedding is zero


class Rates(NamedTuple):
    """Dropout rates: of embeddings and hidden units (per unit), of source and target words (whole words)."""

    embedding: float = 0.0
    hidden: float = 0.0
    source: float = 0.0
    target: float = 0.0


class Memory(NamedTuple):
    """What the decoder knows of the source sentences."""

    context: tf.Tensor  # [batch, source_time, 2 * units], zero on padding
    projected: tf.Tensor  # [batch, source_time, 2 * units], the context's side of the attention energies
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

    def call(self, source: tf.Tensor, mask: tf.Tensor, *, dropout: DropoutMasks, product: Affine = affine) -> tf.Tensor:
        batch, time = tf.unstack(tf.shape(source))
        words = drop(self.embedding(source), dropout.draw(self.rates.source, [batch, time, 1]))
        states = [
            self._run(self.forward_gru, words, mask, dropout, product),
            self._run(self.backward_gru, words, mask, dropout, product, reverse=True),
        ]
        return tf.concat(states, -1)

    def _run(
        self, gru: GRUStep, words, mask, dropout: DropoutMasks, product: Affine, reverse: bool = False
    ) -> tf.Tensor:
        """Returns all states, zero on padding."""
        batch = tf.shape(words)[0]
        masks = gru.masks(dropout, batch, self.rates.embedding, self.rates.hidden)
        initial = tf.zeros([batch, self.units], words.dtype)

        def step(state, inputs, _, mul):
            x, keep = inputs
            return gru.step(state, x, masks, mul) * keep

        sequences = (gru.project_input(words, masks, product), mask[..., tf.newaxis])
        return scan(step, sequences, initial, product=product, reverse=reverse)


class Decoder(Block):
    """The conditional GRU: one GRU on the previous word, attention, a second GRU on what it found, deep output.

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
    ):
        super().__init__(name="decoder")
        self.rates = rates
        self.units = units
        with keras.name_scope(self.name):
            self.initial_state = Projection(2 * units, units, normalization, "initial_state")
            self.embedding = Embedding(words, embedding, "embedding")
            self.word_gru = GRUStep(embedding, units, normalization, name="word_gru")
            self.attention = Attention(2 * units, units, normalization, "attention")
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

    def remember(
        self, context: tf.Tensor, mask: tf.Tensor, dropout: DropoutMasks, product: Affine = affine
    ) -> tuple[tf.Tensor, Memory]:
        """Returns the first state `[batch, units]`, from the mean of the context, and the memory."""
        batch, width = tf.shape(context)[0], context.shape[-1]
        mean = tf.reduce_sum(context, 1) / tf.reduce_sum(mask, 1, keepdims=True)
        mean = drop(mean, dropout.draw(self.rates.hidden, [batch, width]))
        state = tf.tanh(self.initial_state(mean, product=product))
        dropped = drop(context, dropout.draw(self.rates.hidden, [batch, width]))
        return state, Memory(context, self.attention.project_context(dropped, product), mask)

    def call(
        self, words: tf.Tensor, state: tf.Tensor, *, memory: Memory, dropout: DropoutMasks, product: Affine = affine
    ) -> tf.Tensor:
        """Returns what the output layer takes for the word after each of `words`, `[batch, time, embedding]`."""
        batch, time = tf.unstack(tf.shape(words))
        embedded = self.embedding(words)
        embedded = drop(embedded, dropout.draw(self.rates.target, [batch, time, 1]))
        hidden = self.rates.hidden
        word_masks = self.word_gru.masks(dropout, batch, self.rates.embedding, hidden)
        context_masks = self.context_gru.masks(dropout, batch, hidden, hidden)
        query_mask = dropout.draw(hidden, [batch, self.units])
        projected = self.word_gru.project_input(embedded, word_masks, product)

        def step(carried, x, constants, mul):
            seen = Memory(*constants, memory.mask)
            return self._recur(carried[0], x, seen, word_masks, context_masks, query_mask, mul)

        initial = (state, tf.zeros_like(memory.context[:, 0]))
        states, attended = scan(step, projected, initial, (memory.context, memory.projected), product=product)
        return self._deep_output(embedded, states, attended, dropout, product)

    def step(self, words: tf.Tensor, state: tf.Tensor, memory: Memory) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the logits `[batch, words]` of the word after `words` `[batch]`, and the next state."""
        embedded = self.embedding(words)
        projected = self.word_gru.project_input(embedded)
        state, attended = self._recur(state, projected, memory)
        return self.logits(self._deep_output(embedded, state, attended, DropoutMasks())), state

    def _recur(
        self,
        state,
        projected_word,
        memory: Memory,
        word_masks: GRUMasks = NO_MASKS,
        context_masks: GRUMasks = NO_MASKS,
        query_mask=None,
        product: Affine = affine,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """One time step: returns the next state and what was attended to."""
        state = self.word_gru.step(state, projected_word, word_masks, product)
        attended = self.attention.step(drop(state, query_mask), *memory, product)
        projected_context = self.context_gru.project_input(attended, context_masks, product)
        return self.context_gru.step(state, projected_context, context_masks, product), attended

    @property
    def output_layer(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Its table `[words, embedding]` and its bias `[words]`."""
        table = self.embedding.table if self.output_kernel is None else self.output_kernel
        return table.value, self.output_bias.value

    def logits(self, hidden: tf.Tensor) -> tf.Tensor:
        """Returns the logits `[..., words]` of what `call` returns."""
        return over_rows(lambda rows: _logits(rows, *self.output_layer), hidden)

    def _deep_output(self, embedded, states, attended, dropout: DropoutMasks, product: Affine = affine) -> tf.Tensor:
        """For one time step or for all of them."""

        def dropped(x, rate):
            return drop(x, dropout.draw(rate, [tf.shape(x)[0], x.shape[-1]]))

        hidden = self.activation(
            self.from_word(dropped(embedded, self.rates.embedding), product=product)
            + self.from_state(dropped(states, self.rates.hidden), product=product)
            + self.from_context(dropped(attended, self.rates.hidden), product=product)
        )
        return dropped(hidden, self.rates.embedding)


def _logits(rows: tf.Tensor, table: tf.Tensor, bias: tf.Tensor, product: Affine = affine) -> tf.Tensor:
    return product(rows, tf.transpose(table), bias)


class RNNSearch(keras.Model):
    """The translation model.

    Args:
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.
        embedding_size: Size of the word embeddings of either language.
        state_size: Size of each GRU.
        normalization: One of `normalization.KINDS`.
        rates: Dropout rates, used where a dropout seed is given.
        output_activation: `tanh`, `relu`, `prelu` or `linear`, before the output layer.
        tie_decoder_embeddings: The output matrix is the target embedding.

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
        output_activation: str = "tanh",
        tie_decoder_embeddings: bool = False,
    ):
        super().__init__(name="rnnsearch")
        sizes = (embedding_size, state_size, normalization, rates)
        self.encoder = Encoder(source_words, *sizes)
        self.decoder = Decoder(target_words, *sizes, output_activation, tie_decoder_embeddings)
        self.built = True

    def call(self, source, source_mask, target) -> tf.Tensor:
        """Returns the logits of every target word, `[batch, target_time, target_words]`.

        Args:
            source: `[batch, source_time]` ids.
            source_mask: `[batch, source_time]`, 1 on words and their end, 0 on padding.
            target: `[batch, target_time]` ids.
        """
        return self.decoder.logits(self._hidden(source, source_mask, target, None, affine))

    def _hidden(self, source, source_mask, target, dropout_seed, product: Affine) -> tf.Tensor:
        """Returns what the output layer takes for every target word, `[batch, target_time, embedding]`."""
        dropout = DropoutMasks(dropout_seed)
        context = self.encoder(source, source_mask, dropout=dropout, product=product)
        state, memory = self.decoder.remember(context, source_mask, dropout, product)
        previous = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=NO_WORD)
        return self.decoder(previous, state, memory=memory, dropout=dropout, product=product)

    def costs(self, source, source_mask, target, target_mask, *, label_smoothing: float = 0.0) -> tf.Tensor:
        """Returns the negative log-probability of each target sentence with its end, `[batch]`, in nats.

        `label_smoothing` moves this share of the probability from the right word to the uniform distribution over
        all words.
        """
        logits = self(source, source_mask, target)
        return tf.reduce_sum(word_costs(logits, target, label_smoothing) * target_mask, -1)

    def total_cost(
        self,
        source,
        source_mask,
        target,
        target_mask,
        *,
        label_smoothing: float = 0.0,
        dropout_seed=None,
        product: Affine = affine,
    ) -> tf.Tensor:
        """Returns the sum of `costs`, for a training: its gradient takes less memory. Shapes have to be known.

        `dropout_seed` is an integer tensor `[2]`, or `None` for no dropout; `product` makes the matrix products.
        """
        hidden = self._hidden(source, source_mask, target, dropout_seed, product)

        def cost(rows, words, mask, table, bias):
            return tf.reduce_sum(word_costs(_logits(rows, table, bias, product), words, label_smoothing) * mask)

        rows = tuple(tf.reshape(x, [-1, *x.shape[2:]]) for x in (hidden, target, target_mask))
        return sum_in_parts(cost, rows, self.decoder.output_layer)

    def encode(self, source, source_mask) -> tuple[tf.Tensor, Memory]:
        """Returns the decoder's first state `[batch, units]` and its memory of the source."""
        context = self.encoder(source, source_mask, dropout=DropoutMasks())
        return self.decoder.remember(context, source_mask, DropoutMasks())

    def decode_step(self, words, state, memory: Memory) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns log-probabilities `[batch, target_words]` after `words` `[batch]`, and the next state."""
        logits, state = self.decoder.step(words, state, memory)
        return tf.nn.log_softmax(logits), state
