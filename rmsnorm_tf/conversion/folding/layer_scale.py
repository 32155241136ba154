"""The gain of a LayerScale, which the linear maps before it can take over: (x W) * g = x (W
diag(g)).

They can if all that comes of the weights is multiplied by the gain, and nothing else is.
"""

from collections.abc import Container

import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import size, sources
from rmsnorm_tf.conversion.folding.trace import Trace

# Operations whose output is a reshaped copy of an input.
_COPYING = frozenset(
    {
        "Identity",
        "Cast",
        "Reshape",
        "ExpandDims",
        "Squeeze",
        "Transpose",
        "ReadVariableOp",
        "BroadcastTo",
    }
)

# Operations that may put the entries of an axis into another order.
_REORDERING = frozenset({"Roll", "ReverseV2", "StridedSlice"})


def gain_to_absorb(
    traced: Trace, operation: tf.Operation, axis: int, seen: Container
) -> tuple[str, frozenset] | None:
    """Returns the gain that an operation multiplies by and the weights that can take it over, or
    None if none can.

    They are resources, the weights each with the axis of the channels. In `seen` is what must keep
    its mean.
    """
    if (product := _product(traced, operation, axis)) is None:
        return None
    same = [other for other in traced.operations if _product(traced, other, axis) == product]
    reads = {
        len(traced.consumers[name]) for name in (product[0], *(name for name, _ in product[1]))
    }
    is_seen = any((other.outputs[0].name, axis) in seen for other in same)
    return product if reads == {len(same)} and not is_seen else None


def _product(traced, operation, axis):
    """Returns the gain and the weights that an operation multiplies, none of which it shares, or None."""
    for x, factor in (
        (operation.inputs, reversed(operation.inputs)) if operation.type == "Mul" else ()
    ):
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
        if not carried or len(traced.consumers[tensor.name]) > 1:
            return None
        [(number, axis)] = carried
        tensor = tensor.op.inputs[number]
    return (
        tensor.name
        if [s for s in traced.variables[tensor.name].shape if s != 1] == [channels]
        else None
    )


def _weights_of(traced, tensor, axis):
    """Returns the weights that a tensor is linear in along an axis, or None if it has other parts or readers."""
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
