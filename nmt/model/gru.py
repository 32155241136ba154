"""Computes the GRU of Nematus, which normalizes the terms of input and state separately."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from ..normalization import Normalization, build_normalization
from .forward_pass import Affine, ForwardPass, affine, drop, over_rows
from .layers import Block, normal_or_orthogonal
from .recurrence import Matrix, scan


class GRUMasks(NamedTuple):
    """Dropout masks of one GRU for one batch:

    `[batch, inputs]` twice, `[batch, units]` twice, or None.
    """

    input_to_gates: tf.Tensor | None = None
    input_to_proposal: tf.Tensor | None = None
    state_to_gates: tf.Tensor | None = None
    state_to_proposal: tf.Tensor | None = None
    transitions: Sequence["GRUMasks"] = ()


NO_MASKS = GRUMasks()
_NO_INPUT = (0.0, 0.0)  # the terms of the input in a GRU without one


class GRUStep(Block):
    """One step of a GRU. With `N` the normalization:

        r, u  = split(sigmoid(N(x W_g + b_g) + N(h U_g)))
        h~    = tanh(N(x W_p + b_p) + r * N(h U_p))
        h'    = u * h + (1 - u) * h~

    `project_input` computes the terms of x for all time steps at once. In a deep transition,
    further GRUs without input follow within the same time step; they have no terms of x, and biases
    only with `bias_on_state`.

    Args:
        inputs: Size of x; 0 for a GRU without input.
        units: Size of h.
        normalization: Kind of `N`, one of `normalization.KINDS`.
        bias_on_state: Adds the biases to the terms of the state, `N(h U + b)`, as Nematus does in
            the second GRU of the decoder. The reset gate then multiplies the bias of the proposal
            too.
        transitions: Number of further GRUs in the same time step.

    Reference: Cho et al. (2014), arXiv:1406.1078; Sennrich et al. (2017), arXiv:1703.04357; Miceli
    Barone et al. (2017), arXiv:1707.07631, for deep transitions.
    """

    def __init__(
        self,
        inputs: int,
        units: int,
        normalization: Normalization,
        name: str,
        bias_on_state: bool = False,
        transitions: int = 0,
    ):
        super().__init__(name=name)
        self.inputs = inputs
        self.units = units
        if inputs:
            self.input_to_gates = self._matrix("input_to_gates", inputs, 2 * units, _two_blocks)
            self.input_to_proposal = self._matrix("input_to_proposal", inputs, units)
        self.state_to_gates = self._matrix("state_to_gates", units, 2 * units, _two_blocks)
        self.state_to_proposal = self._matrix("state_to_proposal", units, units)
        biases = none = (None, None)
        if inputs or bias_on_state:
            self.gates_bias = self._vector("gates_bias", 2 * units)
            self.proposal_bias = self._vector("proposal_bias", units)
            biases = (self.gates_bias, self.proposal_bias)
        self._input_biases, self._state_biases = (none, biases) if bias_on_state else (biases, none)
        with keras.name_scope(name):
            if inputs:
                self.gates_x_norm = build_normalization(normalization, 2 * units, "gates_x_norm")
            self.gates_state_norm = build_normalization(
                normalization, 2 * units, "gates_state_norm"
            )
            if inputs:
                self.proposal_x_norm = build_normalization(normalization, units, "proposal_x_norm")
            self.proposal_state_norm = build_normalization(
                normalization, units, "proposal_state_norm"
            )
            self.transitions = [
                GRUStep(
                    0, units, normalization, bias_on_state=bias_on_state, name=f"transition{number}"
                )
                for number in range(1, transitions + 1)
            ]

    @property
    def input_matrices(self) -> list[Matrix]:
        """The matrices that `project_input` multiplies by, as `scan` takes them."""
        return list(map(Matrix, (self.input_to_gates, self.input_to_proposal), self._input_biases))

    @property
    def state_matrices(self) -> list[Matrix]:
        """The matrices that `step` multiplies by, as `scan` takes them."""
        own = map(Matrix, (self.state_to_gates, self.state_to_proposal), self._state_biases)
        return [*own, *(matrix for each in self.transitions for matrix in each.state_matrices)]

    def masks(
        self, forward: ForwardPass, batch: tf.Tensor, input_rate: float, state_rate: float
    ) -> GRUMasks:
        return GRUMasks(
            forward.draw(input_rate, [batch, self.inputs]),
            forward.draw(input_rate, [batch, self.inputs]),
            forward.draw(state_rate, [batch, self.units]),
            forward.draw(state_rate, [batch, self.units]),
            [each.masks(forward, batch, 0.0, state_rate) for each in self.transitions],
        )

    def project_input(
        self, x: tf.Tensor, masks: GRUMasks = NO_MASKS, product: Affine = affine
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the input's terms in gates `[..., 2 * units]` and proposal `[..., units]`."""
        gates, proposal = self.input_matrices
        return (
            over_rows(
                lambda rows: self.gates_x_norm(product(rows, *gates)), drop(x, masks.input_to_gates)
            ),
            over_rows(
                lambda rows: self.proposal_x_norm(product(rows, *proposal)),
                drop(x, masks.input_to_proposal),
            ),
        )

    def step(
        self,
        state: tf.Tensor,
        projected: tuple,
        masks: GRUMasks = NO_MASKS,
        product: Affine = affine,
    ) -> tf.Tensor:
        """Returns the next state `[batch, units]`, given the result of `project_input`."""
        gates_x, proposal_x = projected
        to_gates, to_proposal, *_ = self.state_matrices
        gates = product(drop(state, masks.state_to_gates), *to_gates)
        proposal = product(drop(state, masks.state_to_proposal), *to_proposal)
        gates = tf.sigmoid(gates_x + self.gates_state_norm(gates))
        reset, update = tf.split(gates, 2, axis=-1)
        candidate = tf.tanh(proposal_x + reset * self.proposal_state_norm(proposal))
        state = candidate + update * (state - candidate)
        for each, own_masks in itertools.zip_longest(
            self.transitions, masks.transitions, fillvalue=NO_MASKS
        ):
            state = each.step(state, _NO_INPUT, own_masks, product)
        return state


def run_gru(
    gru: GRUStep,
    inputs: tf.Tensor,
    initial: tf.Tensor,
    forward: ForwardPass,
    rates: tuple[float, float],
    mask: tf.Tensor | None = None,
    reverse: bool = False,
) -> tf.Tensor:
    """Returns the states after each input, `[batch, time, units]`, zero where the mask is zero.

    `rates` are those of the dropout of inputs and states.
    """
    masks = gru.masks(forward, tf.shape(inputs)[0], *rates)
    projected = gru.project_input(inputs, masks, forward.affine)
    keep = () if mask is None else mask[..., tf.newaxis]

    def step(state, x_and_keep, _, affine):
        x, keep = x_and_keep
        state = gru.step(state, x, masks, affine)
        return state if mask is None else state * keep

    matrices = gru.state_matrices
    return scan(step, (projected, keep), initial, matrices, dtype=forward.dtype, reverse=reverse)


def _two_blocks(shape, dtype=None):
    """Initialises reset and update gate as two independent `[rows, units]` blocks side by side."""
    rows = shape[0]
    columns = shape[1] // 2
    blocks = [normal_or_orthogonal(rows, columns)((rows, columns), dtype) for _ in range(2)]
    return keras.ops.concatenate(blocks, axis=1)
