"""Finds gains that the linear maps before them can take over, as (x W) * g = x (W diag(g)).

Such is the gain of a LayerScale. Maps can take it over if everything computed from their weights is
multiplied by the gain, and nothing else is.
"""

from collections.abc import Container

import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import size, sources
from rmsnorm_tf.conversion.folding.trace import Trace

# Operations whose output is a reshaped copy of an input.
_COPYING = frozenset(
    {"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "ReadVariableOp"}
    | {"BroadcastTo"}
)

# Operations that may put the entries of an axis into another order.
_REORDERING = frozenset({"Roll", "ReverseV2", "StridedSlice"})


def gain_to_absorb(
    traced: Trace, operation: tf.Operation, axis: int, seen: Container
) -> tuple[str, frozenset] | None:
    """Returns the gain that an operation multiplies by, and the weights that can take it over.

    They are resources, the weights each with the axis of the channels. None if no weights can.
    `seen` contains the tensors, each with an axis, that must keep their mean.
    """
    product = _product(traced, operation, axis)
    if product is None:
        return None
    resources = [product[0], *(name for name, _ in product[1])]
    same = [other for other in traced.operations if _product(traced, other, axis) == product]
    reads = {len(traced.consumers[name]) for name in resources}
    is_seen = any((other.outputs[0].name, axis) in seen for other in same)
    return product if reads == {len(same)} and not is_seen else None


def _product(traced, operation, axis):
    """Returns the gain and the weights that an operation multiplies, or None."""
    if operation.type != "Mul":
        return None
    for x, factor in (operation.inputs, reversed(operation.inputs)):
        gain = _gain(traced, factor, axis)
        weights = gain and _weights_of(traced, x, axis)
        if weights:
            return gain, weights
    return None


def _gain(traced, tensor, axis):
    """Returns the resource that a tensor is a reshaped copy of, an entry per channel, or None."""
    channels = size(tensor, axis)
    while tensor.name not in traced.variables:
        carried = sources(tensor.op, axis) if tensor.op.type in _COPYING else None
        if not carried or len(traced.consumers[tensor.name]) > 1:
            return None
        [(number, axis)] = carried
        tensor = tensor.op.inputs[number]
    sizes = [s for s in traced.variables[tensor.name].shape if s != 1]
    return tensor.name if sizes == [channels] else None


def _weights_of(traced, tensor, axis):
    """Returns the weights that a tensor is linear in, or None if it has other parts or readers."""
    if tensor.name in traced.variables:
        return frozenset({(tensor.name, axis)})
    if (
        len(traced.consumers[tensor.name]) > 1
        or tensor.name in traced.normalized
        or tensor.op.type in _REORDERING
    ):
        return None
    found = sources(tensor.op, axis, tensor.value_index)
    if not found or size(tensor, axis) == 1:
        return None
    parts = [_weights_of(traced, tensor.op.inputs[number], a) for number, a in found]
    return None if None in parts else frozenset().union(*parts)
