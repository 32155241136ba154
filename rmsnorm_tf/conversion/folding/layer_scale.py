"""The gain of a LayerScale, which the linear maps before it can take over: (x W) * g = x (W diag(g)).

A map that is called elsewhere too, without the same LayerScale, is not noticed here: then the outputs change, and the
whole conversion is refused.
"""

import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import size, sources
from rmsnorm_tf.conversion.folding.trace import Trace

# Operations whose output is a reshaped copy of an input.
_COPYING = frozenset(
    {"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "ReadVariableOp", "BroadcastTo"}
)

# Operations that may put the entries of an axis into another order.
_REORDERING = frozenset({"Roll", "ReverseV2", "StridedSlice"})


def gain_to_absorb(traced: Trace, operation: tf.Operation, axis: int) -> tuple[str, frozenset[tuple[str, int]]] | None:
    """Returns the gain that an operation multiplies by and the weights that can take it over, or None if none can.

    They are resources, the weights each with the axis of the channels.
    """
    if operation.type == "Mul":
        for x, factor in (operation.inputs, reversed(operation.inputs)):
            gain = _gain(traced, factor, axis)
            weights = gain and _weights_of(traced, x, axis)
            if weights:
                return gain, weights
    return None


def _gain(traced, tensor, axis):
    """Returns the resource of which a tensor is a reshaped copy, one entry per channel, or None."""
    channels = size(tensor, axis)
    while tensor.name not in traced.variables:
        carried = sources(tensor.op, axis) if tensor.op.type in _COPYING else None
        if not carried:
            return None
        [(number, axis)] = carried
        tensor = tensor.op.inputs[number]
    return tensor.name if [s for s in traced.variables[tensor.name].shape if s != 1] == [channels] else None


def _weights_of(traced, tensor, axis):
    """Returns the weights that a tensor is linear in along an axis, or None if it has other parts or readers."""
    if tensor.name in traced.variables:
        return frozenset({(tensor.name, axis)})
    found = None if tensor.op.type in _REORDERING else sources(tensor.op, axis, tensor.value_index)
    if not found or tensor.name in traced.normalized or tensor.name in traced.outputs:
        return None
    if size(tensor, axis) == 1 or len(traced.consumers[tensor.name]) > 1:
        return None
    parts = [_weights_of(traced, tensor.op.inputs[number], a) for number, a in found]
    return None if None in parts else frozenset().union(*parts)
