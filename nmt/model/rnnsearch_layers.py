"""The encoder and the decoder of the RNN model."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import tensorflow as tf

from .additive_attention import AdditiveAttention
from .affine import Affine, affine
from .forward_pass import ForwardPass, drop
from .gru import NO_MASKS, GRUMasks, GRUStep
from .layers import Block, Embedding, PReLU, Projection
from .recurrence import scan


class Rates(NamedTuple):
    """Dropout rates of embedding units, hidden units, and whole source and target words."""

    embedding: float = 0.0
    hidden: float = 0.0
    source: float = 0.0
    target: float = 0.0


class Depths(NamedTuple):
    """Numbers of GRUs: levels, which each run over the whole sentence, and transitions, within one time step."""

    encoder: int = 1
    encoder_transition: int = 1
    decoder: int = 1
    base_transition: int = 2  # in the first level of the decoder, the one with the attention
    high_transition: int = 1  # in each further level of the decoder
    deep_context: bool = False  # further levels of the decoder see the attended context too


SHALLOW = Depths()


class Sizes(NamedTuple):
    """Sizes and kinds that encoder and decoder share."""

    embedding: int
    units: int
    normalization: str  # one of normalization.KINDS
    rates: Rates
    depths: Depths


class DecoderMasks(NamedTuple):
    """Dropout masks of the parts of one time step of the decoder's first level, fixed for all steps of a batch."""

    word: GRUMasks = NO_MASKS
    query: tf.Tensor | None = None
    context: GRUMasks = NO_MASKS


NO_DECODER_MASKS = DecoderMasks()


class Memory(NamedTuple):
    """The source sentences as the decoder sees them."""

    context: tf.Tensor  # [batch, source_time, 2 * units], zero on padding
    projected: tf.Tensor  # [batch, source_time, 2 * units], the term of the context in the attention energies
    mask: tf.Tensor  # [batch, source_time]


class Encoder(Block):
    """Maps source ids `[batch, source_time]` to their context `[batch, source_time, 2 * units]`, zero on padding.

    Two stacks of GRUs read the words, one forwards and one backwards. In each stack the direction alternates from level
    to level, and every level but the first adds its states to its inputs.

    Reference: Zhou et al. (2016), arXiv:1606.04199; Miceli Barone et al. (2017), arXiv:1707.07631.
    """

    def __init__(self, words: int, sizes: Sizes):
        super().__init__(name="encoder")
        embedding, units, normalization, self.rates, depths = sizes
        self.units = units

        def stack(name: str) -> list[GRUStep]:
            transitions = depths.encoder_transition - 1
            first = GRUStep(embedding, units, normalization, transitions=transitions, name=name)
            levels = range(1, depths.encoder)
            return [first] + [
                GRUStep(units, units, normalization, transitions=transitions, name=f"{name}{level}") for level in levels
            ]

        with keras.name_scope(self.name):
            self.embedding = Embedding(words, embedding, "embedding")
            self.forward_stack = stack("forward")
            self.backward_stack = stack("backward")

    def call(self, source: tf.Tensor, mask: tf.Tensor, *, forward: ForwardPass) -> tf.Tensor:
        batch, time = tf.unstack(tf.shape(source))
        words = drop(self.embedding(source), forward.draw(self.rates.source, [batch, time, 1]))
        states = [
            self._run_stack(self.forward_stack, words, mask, forward, reverse=False),
            self._run_stack(self.backward_stack, words, mask, forward, reverse=True),
        ]
        if len(self.forward_stack) % 2 == 0:  # as in Nematus, those that end left to right come first
            states.reverse()
        return tf.concat(states, -1)

    def _run_stack(self, stack: list[GRUStep], words, mask, forward: ForwardPass, *, reverse: bool) -> tf.Tensor:
        first, *others = stack
        states = self._run(first, words, mask, forward, self.rates.embedding, reverse)
        for gru in others:
            reverse = not reverse
            states += self._run(gru, states, mask, forward, self.rates.hidden, reverse)
        return states

    def _run(self, gru: GRUStep, inputs, mask, forward: ForwardPass, rate: float, reverse: bool) -> tf.Tensor:
        """Returns all states, zero on padding; `rate` drops inputs."""
        batch = tf.shape(inputs)[0]
        masks = gru.masks(forward, batch, rate, self.rates.hidden)
        initial = tf.zeros([batch, self.units], inputs.dtype)

        def step(state, x_and_keep, _, affine):
            x, keep = x_and_keep
            return gru.step(state, x, masks, affine) * keep

        sequences = (gru.project_input(inputs, masks, forward.affine), mask[..., tf.newaxis])
        return scan(step, sequences, initial, gru.state_matrices, dtype=forward.dtype, reverse=reverse)


class Decoder(Block):
    """The conditional GRU: a GRU on the previous word, attention, a second GRU on the attended context, deep output.

    Each further level is a GRU that reads the states of the level below and adds its own states to them. All levels
    begin with the same state.

    Reference: Sennrich et al. (2017), arXiv:1703.04357, section 3; Miceli Barone et al. (2017), arXiv:1707.07631.
    """

    def __init__(
        self,
        words: int,
        sizes: Sizes,
        activation: str,
        tied: bool,
        shared: Embedding | None,
    ):
        super().__init__(name="decoder")
        embedding, units, normalization, self.rates, depths = sizes
        self.depths, self.units = depths, units
        with keras.name_scope(self.name):
            self.initial_state = Projection(2 * units, units, normalization, "initial_state")
            self.embedding = shared or Embedding(words, embedding, "embedding")
            self.word_gru = GRUStep(embedding, units, normalization, name="word_gru")
            self.attention = AdditiveAttention(2 * units, units, normalization, "attention")
            self.context_gru = GRUStep(
                2 * units,
                units,
                normalization,
                bias_on_state=True,
                transitions=depths.base_transition - 2,
                name="context_gru",
            )
            self.high_grus = _high_grus(units, normalization, depths)
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

    def remember(self, context: tf.Tensor, mask: tf.Tensor, forward: ForwardPass) -> tuple[tf.Tensor, Memory]:
        """Returns the first state of each level `[batch, units]`, from the mean of the context, and the memory."""
        batch, width = tf.shape(context)[0], context.shape[-1]
        mean = tf.reduce_sum(context, 1) / tf.reduce_sum(mask, 1, keepdims=True)
        mean = drop(mean, forward.draw(self.rates.hidden, [batch, width]))
        state = tf.tanh(self.initial_state(mean, affine=forward.affine))
        dropped = drop(context, forward.draw(self.rates.hidden, [batch, width]))
        return state, Memory(context, self.attention.project_context(dropped, forward.affine), mask)

    def call(self, words: tf.Tensor, state: tf.Tensor, *, memory: Memory, forward: ForwardPass) -> tf.Tensor:
        """Returns the input of the output layer for the word after each of `words`, `[batch, time, embedding]`."""
        batch, time = tf.unstack(tf.shape(words))
        embedded = self.embedding(words)
        embedded = drop(embedded, forward.draw(self.rates.target, [batch, time, 1]))
        hidden = self.rates.hidden
        word_masks = self.word_gru.masks(forward, batch, self.rates.embedding, hidden)
        context_masks = self.context_gru.masks(forward, batch, hidden, hidden)
        masks = DecoderMasks(word_masks, forward.draw(hidden, [batch, self.units]), context_masks)
        projected = self.word_gru.project_input(embedded, word_masks, forward.affine)

        def step(carried, x, constants, affine):
            def attend(query):
                return affine(self.attention.shares(query, constants[0], memory.mask, affine), memory.context)

            return self._recur(carried[0], x, attend, masks, affine)

        initial = (state, tf.zeros_like(memory.context[:, 0]))
        matrices = [
            *self.word_gru.state_matrices,
            *self.attention.matrices(memory.context),
            *self.context_gru.input_matrices,
            *self.context_gru.state_matrices,
        ]
        states, attended = scan(step, projected, initial, matrices, [memory.projected], dtype=forward.dtype)
        for gru in self.high_grus:
            states += self._run_high(gru, states, attended, state, forward)
        return self._deep_output(embedded, states, attended, forward)

    def _run_high(self, gru: GRUStep, below, attended, state, forward: ForwardPass) -> tf.Tensor:
        """Returns the states of a further level, `[batch, time, units]`."""
        masks = gru.masks(forward, tf.shape(below)[0], self.rates.hidden, self.rates.hidden)
        projected = gru.project_input(self._high_input(below, attended), masks, forward.affine)

        def step(state, x, _, affine):
            return gru.step(state, x, masks, affine)

        return scan(step, projected, state, gru.state_matrices, dtype=forward.dtype)

    def _high_input(self, below, attended) -> tf.Tensor:
        """Returns the input of a further level, for one time step or for all of them."""
        return tf.concat([below, attended], -1) if self.depths.deep_context else below

    def step(self, words: tf.Tensor, state: tf.Tensor, memory: Memory) -> tuple[tf.Tensor, tf.Tensor, Memory]:
        """Returns the input of the output layer for the word after `words` `[rows]`, the next state and the memory.

        A state holds those of all levels side by side. Each sentence of the memory has equally many rows.
        """
        embedded = self.embedding(words)
        base, *high = tf.split(state, self.depths.decoder, -1)
        projected = self.word_gru.project_input(embedded)
        base, attended = self._recur(base, projected, lambda query: self.attention.attend(query, *memory))
        output, states = base, [base]
        for gru, own in zip(self.high_grus, high, strict=True):
            states.append(gru.step(own, gru.project_input(self._high_input(output, attended))))
            output += states[-1]
        return self._deep_output(embedded, output, attended, ForwardPass()), tf.concat(states, -1), memory

    def make_step(self) -> Callable[[tf.Tensor, tf.Tensor, Memory], tuple[tf.Tensor, tf.Tensor, Memory]]:
        """Returns `step`."""
        return self.step

    def attention_weights(self, words: tf.Tensor, state: tf.Tensor, memory: Memory) -> tf.Tensor:
        """Returns the attention weights of the word after each of `words`, `[batch, time, source_time]`."""
        projected = self.word_gru.project_input(self.embedding(words))
        projected = tuple(tf.transpose(x, [1, 0, 2]) for x in projected)  # [time, batch, ...]

        def step(carried, x):
            weights = []

            def attend(query):
                weights.append(self.attention.shares(query, memory.projected, memory.mask))
                return affine(weights[0], memory.context)

            state, _ = self._recur(carried[0], x, attend)
            return state, weights[0]

        _, weights = tf.scan(step, projected, (state, tf.zeros_like(memory.mask)))
        return tf.transpose(weights, [1, 0, 2])

    def _recur(
        self,
        state,
        projected_word,
        attend: Callable[[tf.Tensor], tf.Tensor],
        masks: DecoderMasks = NO_DECODER_MASKS,
        affine: Affine = affine,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs one time step of the first level; returns the next state and the attended context."""
        state = self.word_gru.step(state, projected_word, masks.word, affine)
        attended = attend(drop(state, masks.query))
        projected_context = self.context_gru.project_input(attended, masks.context, affine)
        return self.context_gru.step(state, projected_context, masks.context, affine), attended

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
            self.from_word(dropped(embedded, self.rates.embedding), affine=forward.affine)
            + self.from_state(dropped(states, self.rates.hidden), affine=forward.affine)
            + self.from_context(dropped(attended, self.rates.hidden), affine=forward.affine)
        )
        return dropped(hidden, self.rates.embedding)


def _high_grus(units: int, normalization: str, depths: Depths) -> list[GRUStep]:
    """Returns the GRU of each further level of the decoder."""
    return [
        GRUStep(
            3 * units if depths.deep_context else units,
            units,
            normalization,
            bias_on_state=True,
            transitions=depths.high_transition - 1,
            name=f"high{level}",
        )
        for level in range(depths.decoder - 1)
    ]
