"""Measures a trained model: the share of the mean square that centring removes."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from rmsnorm_tf import RMSNormGRUCell, RMSNormLSTMCell


def mean_share(
    model: keras.Model, layers: Sequence[str], inputs: Any, axis: Any = -1
) -> dict[str, float]:
    """Returns the share of the mean in the mean square of some layers' outputs.

    It is `E[mean(a)**2] / E[mean(a**2)]`. The share is the part of the mean square that LayerNorm's
    centring removes: 0 if the mean is 0, 1 if all entries are equal.

    Args:
        model: A functional model.
        layers: Names of layers, for example of those before the norms.
        inputs: Inputs of the model.
        axis: Axis or axes of mean and mean square.
    """
    probe = keras.Model(model.input, [model.get_layer(name).output for name in layers])
    outputs = keras.tree.flatten(probe(inputs, training=False))
    return {name: share_of_mean(a, axis) for name, a in zip(layers, outputs, strict=True)}


def gru_shares(cell: RMSNormGRUCell, inputs: Any, mask: Any) -> dict[str, float]:
    """Returns the share of the mean in the input of each norm of a cell, by what is normalized.

    Args:
        cell: A built cell with `reset_after=True` and `normalize_bias=False`, the defaults.
        inputs: `[batch, time, inputs]`.
        mask: `[batch, time]`, true where there is an input.
    """
    states = keras.layers.RNN(cell, return_sequences=True)(inputs, mask=mask)
    # The state before each time step.
    before = keras.ops.pad(states[:, :-1], ((0, 0), (1, 0), (0, 0)))
    found = {}
    for what, vectors, kernel in (
        ("input", inputs, cell.kernel),
        ("state", before, cell.recurrent_kernel),
    ):
        products = np.asarray(vectors)[np.asarray(mask)] @ kernel.numpy()  # [steps, 3 * units]
        gates, proposal = np.split(products, [2 * cell.units], axis=-1)
        found |= {
            f"{what}_gates": share_of_mean(gates),
            f"{what}_proposal": share_of_mean(proposal),
        }
    return found


def lstm_shares(
    cell: RMSNormLSTMCell, inputs: Any, mask: np.ndarray | None = None
) -> dict[str, float]:
    """Returns the share of the mean in the input of each norm of a cell, by what is normalized.

    Args:
        cell: A built cell with `normalize_bias=False` and `normalize_carry=False`, the defaults.
        inputs: `[batch, time, inputs]`. The cell may have uses of its own for entries beyond those
            of its kernel.
        mask: `[batch, time]`, true where there is an input, which is at the beginning; `None` if it
            is everywhere.
    """
    states = [keras.ops.zeros((inputs.shape[0], cell.units)) for _ in range(2)]
    state = []
    carry = []
    for step in range(inputs.shape[1]):
        state.append(states[0] @ cell.recurrent_kernel)
        _, states = cell(inputs[:, step], states)
        carry.append(states[1])
    read = inputs[..., : cell.kernel.shape[0]]
    found = {
        "input": read @ cell.kernel,
        "state": keras.ops.stack(state, 1),
        "carry": keras.ops.stack(carry, 1),
    }
    chosen = np.ones(inputs.shape[:2], bool) if mask is None else mask
    return {what: share_of_mean(np.asarray(values)[chosen]) for what, values in found.items()}


def share_of_mean(a: Any, axis: Any = -1) -> float:
    """Returns `E[mean(a)**2] / E[mean(a**2)]`, with the inner means over the axis or axes."""
    a = np.asarray(a, np.float64)
    return float(np.mean(a.mean(axis) ** 2) / np.mean(a**2))
