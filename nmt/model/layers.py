"""The building blocks of the RNN model: dropout masks, projection, GRU step, additive attention.

Row vectors throughout: `x W`. A block offers what depends only on known inputs apart from what must run step by
step, so that the former is computed for all time steps in one matrix product.
"""

from collections.abc import Callable
from typing import NamedTuple

import keras
import tensorflow as tf

from ..normalization import build_normalization
from .affine import Affine, affine, over_rows

_GENERATOR = "philox"  # the same in and outside of XLA, whose own choice is slow


class DropoutMasks:
    """Draws the dropout masks of one update, all from one seed.

    A mask is drawn once per sequence and reused at every time step, as in Nematus. The i-th mask is a pure function of
    the seed and i, so the same seed gives the same update.

    Args:
        seed: Integer tensor `[2]`, or `None` for no dropout at all.
    """

    def __init__(self, seed: tf.Tensor | None = None):
        self._seed = seed
        self._drawn = 0

    def draw(self, rate: float, shape) -> tf.Tensor | None:
        """Returns a mask of `shape`, 0 or 1 / (1 - rate), or `None` where nothing is dropped."""
        if self._seed is None or rate == 0.0:
            return None
        self._drawn += 1
        seed = tf.add(tf.cast(self._seed, tf.int64), [self._drawn << 32, 0])  # another for each mask
        kept = tf.random.stateless_uniform(shape, seed, alg=_GENERATOR) >= rate
        return tf.cast(kept, tf.float32) / (1.0 - rate)


def drop(x: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Applies a mask `[batch, units]` to `[batch, units]` or, at every time step, `[batch, time, units]`."""
    if mask is None:
        return x
    if len(x.shape) == 3 and len(mask.shape) == 2:
        mask = mask[:, tf.newaxis]  # [batch, 1, units]
    return x * mask


def _normal_or_orthogonal(rows: int, columns: int) -> keras.initializers.Initializer:
    if rows == columns:
        return keras.initializers.Orthogonal()
    return keras.initializers.RandomNormal(stddev=0.01)


def _two_blocks(shape, dtype=None):
    """Initialises reset and update gate as two independent `[rows, units]` blocks side by side."""
    rows, columns = shape[0], shape[1] // 2
    blocks = [_normal_or_orthogonal(rows, columns)((rows, columns), dtype) for _ in range(2)]
    return keras.ops.concatenate(blocks, axis=1)


class Block(keras.layers.Layer):
    """A layer whose weights exist from the start, since their sizes are known."""

    def __init__(self, name: str):
        super().__init__(name=name)
        self.built = True

    def _matrix(self, name: str, rows: int, columns: int, initializer=None) -> keras.Variable:
        initializer = initializer or _normal_or_orthogonal(rows, columns)
        return self.add_weight(shape=(rows, columns), initializer=initializer, name=name)

    def _vector(self, name: str, units: int, initializer="zeros") -> keras.Variable:
        return self.add_weight(shape=(units,), initializer=initializer, name=name)


class Embedding(Block):
    """Word vectors `[words, units]`; a negative id stands for no word and gives zeros."""

    def __init__(self, words: int, units: int, name: str):
        super().__init__(name=name)
        self.table = self._matrix("embeddings", words, units)

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        known = tf.cast(ids >= 0, self.compute_dtype)
        return tf.gather(self.table.value, tf.maximum(ids, 0)) * known[..., tf.newaxis]


class Projection(Block):
    """`N(x W + b)`, with `N` the normalization."""

    def __init__(self, inputs: int, units: int, normalization: str, name: str):
        super().__init__(name=name)
        self.kernel = self._matrix("kernel", inputs, units)
        self.bias = self._vector("bias", units)
        with keras.name_scope(name):
            self.normalization = build_normalization(normalization, units, "norm")

    def call(self, x: tf.Tensor, product: Affine = affine) -> tf.Tensor:
        return over_rows(lambda rows: self.normalization(product(rows, self.kernel, self.bias)), x)


class PReLU(Block):
    """`max(x, 0) + slope * min(x, 0)`, with a slope for each unit that begins at 1, as in Nematus.

    Keras's own takes inputs of one rank only.

    Reference: He et al. (2015), arXiv:1502.01852.
    """

    def __init__(self, units: int, name: str):
        super().__init__(name=name)
        self.slope = self._vector("slope", units, "ones")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.maximum(x, 0.0) + self.slope * tf.minimum(x, 0.0)


class GRUMasks(NamedTuple):
    """Dropout masks of one GRU for one batch: `[batch, inputs]` twice, `[batch, units]` twice, or None."""

    input_to_gates: tf.Tensor | None = None
    input_to_proposal: tf.Tensor | None = None
    state_to_gates: tf.Tensor | None = None
    state_to_proposal: tf.Tensor | None = None


NO_MASKS = GRUMasks()


class GRUStep(Block):
    """The gated recurrent unit of Nematus, with each side of gates and proposal normalised on its own.

        r, u  = split(sigmoid(N(x W_g + b_g) + N(h U_g)))
        h~    = tanh(N(x W_p + b_p) + r * N(h U_p))
        h'    = u * h + (1 - u) * h~

    Args:
        inputs: Size of x.
        units: Size of h.
        normalization: Kind of `N`, one of `normalization.KINDS`.
        bias_on_state: Adds the biases to the state's side, `N(h U + b)`, as Nematus does in the decoder's second GRU;
            the reset gate then multiplies the proposal's bias too.
        name: Name of the layer.

    Reference: Cho et al. (2014), arXiv:1406.1078; Sennrich et al. (2017), arXiv:1703.04357.
    """

    def __init__(self, inputs: int, units: int, normalization: str, *, bias_on_state: bool = False, name: str):
        super().__init__(name=name)
        self.inputs, self.units, self.bias_on_state = inputs, units, bias_on_state
        self.input_to_gates = self._matrix("input_to_gates", inputs, 2 * units, _two_blocks)
        self.input_to_proposal = self._matrix("input_to_proposal", inputs, units)
        self.state_to_gates = self._matrix("state_to_gates", units, 2 * units, _two_blocks)
        self.state_to_proposal = self._matrix("state_to_proposal", units, units)
        self.gates_bias = self._vector("gates_bias", 2 * units)
        self.proposal_bias = self._vector("proposal_bias", units)
        with keras.name_scope(name):
            self.gates_x_norm, self.gates_state_norm = (
                build_normalization(normalization, 2 * units, norm) for norm in ("gates_x_norm", "gates_state_norm")
            )
            self.proposal_x_norm, self.proposal_state_norm = (
                build_normalization(normalization, units, norm) for norm in ("proposal_x_norm", "proposal_state_norm")
            )

    def masks(self, dropout: DropoutMasks, batch: tf.Tensor, input_rate: float, state_rate: float) -> GRUMasks:
        """Draws the four masks of one batch."""
        return GRUMasks(
            dropout.draw(input_rate, [batch, self.inputs]),
            dropout.draw(input_rate, [batch, self.inputs]),
            dropout.draw(state_rate, [batch, self.units]),
            dropout.draw(state_rate, [batch, self.units]),
        )

    def project_input(
        self, x: tf.Tensor, masks: GRUMasks = NO_MASKS, product: Affine = affine
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the input's side of gates and proposal, `[..., 2 * units]` and `[..., units]`."""
        biases = (None, None) if self.bias_on_state else (self.gates_bias, self.proposal_bias)

        def gates(rows):
            return self.gates_x_norm(product(rows, self.input_to_gates, biases[0]))

        def proposal(rows):
            return self.proposal_x_norm(product(rows, self.input_to_proposal, biases[1]))

        return over_rows(gates, drop(x, masks.input_to_gates)), over_rows(proposal, drop(x, masks.input_to_proposal))

    def step(
        self,
        state: tf.Tensor,
        projected: tuple[tf.Tensor, tf.Tensor],
        masks: GRUMasks = NO_MASKS,
        product: Affine = affine,
    ) -> tf.Tensor:
        """Returns the next state `[batch, units]` from this one and `project_input`'s result for it."""
        gates_x, proposal_x = projected
        biases = (self.gates_bias, self.proposal_bias) if self.bias_on_state else (None, None)
        gates = product(drop(state, masks.state_to_gates), self.state_to_gates, biases[0])
        proposal = product(drop(state, masks.state_to_proposal), self.state_to_proposal, biases[1])
        gates = tf.sigmoid(gates_x + self.gates_state_norm(gates))
        reset, update = tf.split(gates, 2, axis=-1)
        candidate = tf.tanh(proposal_x + reset * self.proposal_state_norm(proposal))
        return candidate + update * (state - candidate)


class Attention(Block):
    """Additive attention: energy = tanh(N(h_i W_c + b) + N(s W_s)) w, softmax over the unmasked positions.

    Reference: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2.
    """

    def __init__(self, context_units: int, state_units: int, normalization: str, name: str):
        super().__init__(name=name)
        hidden = context_units
        self.context_to_hidden = self._matrix("context_to_hidden", context_units, hidden)
        self.state_to_hidden = self._matrix("state_to_hidden", state_units, hidden)
        self.hidden_bias = self._vector("hidden_bias", hidden)
        self.hidden_to_score = self._matrix("hidden_to_score", hidden, 1)
        with keras.name_scope(name):
            self.context_norm = build_normalization(normalization, hidden, "hidden_context_norm")
            self.state_norm = build_normalization(normalization, hidden, "hidden_state_norm")

    def project_context(self, context: tf.Tensor, product: Affine = affine) -> tf.Tensor:
        """Returns the context's side of the energies, `[batch, source_time, hidden]`."""
        return over_rows(
            lambda rows: self.context_norm(product(rows, self.context_to_hidden, self.hidden_bias)), context
        )

    def step(
        self,
        state: tf.Tensor,
        context: tf.Tensor,
        projected: tf.Tensor,
        source_mask: tf.Tensor,
        product: Affine = affine,
    ) -> tf.Tensor:
        """Attends to the context from a state.

        Args:
            state: `[batch, state_units]`.
            context: `[batch, source_time, context_units]`.
            projected: `project_context(context)`.
            source_mask: `[batch, source_time]`, 1 on words and their end, 0 on padding.
            product: Makes the matrix products.

        Returns:
            The weighted mean of the context, `[batch, context_units]`.
        """
        query = self.state_norm(product(state, self.state_to_hidden))
        energy = _energies(projected, query, self.hidden_to_score.value)
        weights = tf.nn.softmax(tf.where(source_mask > 0, energy, energy.dtype.min))
        return product(weights, context)


@tf.custom_gradient
def _energies(projected: tf.Tensor, query: tf.Tensor, to_score: tf.Tensor):
    """Returns `tanh(projected + query) w`, `[batch, time]`, of `[batch, time, hidden]` and `[batch, hidden]`.

    Its gradient computes the tanh anew: to keep it would take [batch, time, hidden] for every target word.
    """
    column = tf.squeeze(to_score, -1)

    def gradient(d_energies):
        d, hidden = d_energies[..., tf.newaxis], tf.tanh(projected + query[:, tf.newaxis])
        d_projected = (d - d * hidden * hidden) * column
        d_query = _time_sum(lambda d, hidden: d - d * hidden * hidden, d, hidden) * column
        d_to_score = tf.reduce_sum(_time_sum(tf.multiply, d, hidden), 0)
        return d_projected, d_query, d_to_score[:, tf.newaxis]

    energies = over_rows(lambda rows: affine(rows, to_score), tf.tanh(projected + query[:, tf.newaxis]))
    return tf.squeeze(energies, -1), gradient


def _time_sum(function: Callable[..., tf.Tensor], d: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
    """Returns the sum over time of what a function makes of `[batch, time, 1]` and `[batch, time, hidden]`.

    It is written as a sum of time steps, which XLA vectorizes on a CPU, and makes in one loop with the function; and in
    two halves, as XLA would repeat a single sum in the loop of each of its uses, but not what it has to concatenate.
    """
    if hidden.shape[1] is None:
        return tf.reduce_sum(function(d, hidden), 1)
    ds = tf.unstack(d, axis=1)
    middle = hidden.shape[-1] // 2
    halves = [tf.unstack(half, axis=1) for half in (hidden[..., :middle], hidden[..., middle:])]
    return tf.concat([tf.add_n(list(map(function, ds, half))) for half in halves], -1)
