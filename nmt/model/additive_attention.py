"""Computes additive attention; its gradient stores no `[batch, time, hidden]` per target word."""

import keras
import tensorflow as tf

from ..normalization import Normalization, build_normalization
from .forward_pass import Affine, affine, over_rows
from .layers import Block
from .recurrence import Matrix


class AdditiveAttention(Block):
    """Attention with energies `tanh(N(h_i W_c + b) + N(s W_s)) w` and a softmax over the unmasked
    positions.

    Reference: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2.
    """

    def __init__(
        self, context_units: int, state_units: int, normalization: Normalization, name: str
    ):
        super().__init__(name=name)
        hidden = context_units
        self.context_to_hidden = self._matrix("context_to_hidden", context_units, hidden)
        self.state_to_hidden = self._matrix("state_to_hidden", state_units, hidden)
        self.hidden_bias = self._vector("hidden_bias", hidden)
        self.hidden_to_score = self._matrix("hidden_to_score", hidden, 1)
        with keras.name_scope(name):
            self.context_norm = build_normalization(normalization, hidden, "hidden_context_norm")
            self.state_norm = build_normalization(normalization, hidden, "hidden_state_norm")

    def matrices(self, context: tf.Tensor) -> list[Matrix]:
        """Returns the matrices by which `attention_weights` and `attend` multiply, for `scan`."""
        return [Matrix(self.state_to_hidden), Matrix(context)]

    def project_context(self, context: tf.Tensor, product: Affine = affine) -> tf.Tensor:
        """Returns the term of the context in the energies, `[batch, source_time, hidden]`."""
        return over_rows(
            lambda rows: self.context_norm(product(rows, self.context_to_hidden, self.hidden_bias)),
            context,
        )

    def attention_weights(
        self,
        state: tf.Tensor,
        projected: tf.Tensor,
        source_mask: tf.Tensor,
        product: Affine = affine,
    ) -> tf.Tensor:
        """Returns the weight of each source position, `[batch, source_time]`.

        Args:
            state: `[batch, state_units]`.
            projected: `project_context(context)`.
            source_mask: `[batch, source_time]`, 1 on words and their end, 0 on padding.
            product: Computes the product with the state.
        """
        query = self.state_norm(product(state, self.state_to_hidden))
        energy = _energies(projected, query, self.hidden_to_score.value)
        return tf.nn.softmax(tf.where(source_mask > 0, energy, energy.dtype.min))

    def attend(
        self, state: tf.Tensor, context: tf.Tensor, projected: tf.Tensor, source_mask: tf.Tensor
    ) -> tf.Tensor:
        """Returns the weighted means of the context, `[batch * hypotheses, context_units]`, for as
        many states.

        It has no custom gradient, for decoding.

        Args:
            state: `[batch * hypotheses, state_units]`.
            context: `[batch, source_time, context_units]`.
        """
        batch, _, hidden = tf.unstack(tf.shape(projected))
        query = tf.reshape(
            self.state_norm(affine(state, self.state_to_hidden)), [batch, -1, 1, hidden]
        )
        energy = over_rows(
            lambda rows: affine(rows, self.hidden_to_score.value),
            tf.tanh(projected[:, tf.newaxis] + query),
        )
        energy = tf.where(source_mask[:, tf.newaxis] > 0, tf.squeeze(energy, -1), energy.dtype.min)
        attended = tf.matmul(tf.nn.softmax(energy), context)  # [batch, hypotheses, context_units]
        return tf.reshape(attended, [-1, context.shape[-1]])


@tf.custom_gradient
def _energies(projected: tf.Tensor, query: tf.Tensor, to_score: tf.Tensor):
    """Returns `tanh(projected + query) w`, `[batch, time]`, of `[batch, time, hidden]` and `[batch,
    hidden]`.

    Its gradient computes the tanh again: storing it would take `[batch, time, hidden]` for every
    target word.
    """
    hidden = tf.tanh(projected + query[:, tf.newaxis])

    def gradient(d_energies):
        hidden = tf.tanh(projected + query[:, tf.newaxis])
        slope = 1.0 - hidden * hidden
        column = tf.squeeze(to_score, -1)
        # Sums over time by products: on a CPU, XLA vectorizes no sum of unknown length.
        rows = d_energies[:, tf.newaxis]
        d_projected = d_energies[..., tf.newaxis] * slope * column
        d_query = tf.squeeze(rows @ slope, 1) * column
        d_to_score = tf.reduce_sum(rows @ hidden, 0)  # [1, hidden]
        return d_projected, d_query, tf.transpose(d_to_score)

    return tf.squeeze(over_rows(lambda rows: affine(rows, to_score), hidden), -1), gradient
