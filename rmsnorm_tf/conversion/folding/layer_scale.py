"""The gain of a LayerScale, which the linear maps before it can take over: (x W) * g = x (W diag(g))."""

from typing import NamedTuple

import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import size, sources, targets
from rmsnorm_tf.conversion.folding.trace import Trace

# Operations whose output is a reshaped copy of an input.
_COPYING = frozenset(
    {"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "ReadVariableOp", "BroadcastTo"}
)

# Operations that may put the entries of an axis into another order.
_REORDERING = frozenset({"Roll", "ReverseV2", "StridedSlice"})


class Absorbed(NamedTuple):
    """A gain, the weights that can take it over, and all its products, by name, each with the axis of the channels."""

    gain: str
    weights: frozenset[tuple[str, int]]
    products: frozenset[tuple[str, int]]


def gain_to_absorb(traced: Trace, operation: tf.Operation, axis: int) -> Absorbed | None:
    """Returns how weights take over the gain that an operation multiplies by, or None if they cannot."""
    if operation.type != "Mul":
        return None
    for x, factor in (operation.inputs, reversed(operation.inputs)):
        gain = _gain(traced, factor, axis)
        weights = gain and _weights_of(traced, x, axis)
        products = weights and _products_of(traced, gain, weights)
        if products:
            return Absorbed(gain, weights, products)
    return None


def _gain(traced, tensor, axis):
    """Returns the resource of which a tensor is a reshaped copy, one entry per channel, or None."""
    found = _variable(traced, tensor, axis)
    if found and tuple(s for s in traced.variables[found[0]].shape if s != 1) == (size(tensor, axis),):
        return found[0]
    return None


def _weights_of(traced, tensor, axis):
    """Returns the weights that a tensor is linear in along an axis, or None if anything else is added to it."""
    if tensor.name in traced.variables:
        return frozenset({(tensor.name, axis)})
    found = None if tensor.op.type in _REORDERING else sources(tensor.op, axis, tensor.value_index)
    if not found or tensor.name in traced.normalized:
        return None
    whole = frozenset()
    for number, a in found:
        inner = tensor.op.inputs[number]
        part = None if size(inner, a) == 1 and inner.dtype != tf.resource else _weights_of(traced, inner, a)
        if part is None:
            return None
        whole |= part
    return whole


def _products_of(traced, gain, weights):
    """Returns the products of the gain with these weights alone, or None if either goes elsewhere too."""
    products = {}

    def reaches_products(name, along):
        for operation, position in traced.consumers[name]:
            if operation.type == "Mul" and _gain(traced, operation.inputs[1 - position], along) == gain:
                if _weights_of(traced, operation.inputs[position], along) != weights:
                    return False
                products[operation.name] = (operation.outputs[0].name, along)
                continue
            linear = operation.outputs and operation.outputs[0].name not in traced.normalized
            reached = targets(operation, position, along) if linear else None
            if not reached or not all(reaches_products(operation.outputs[n].name, a) for n, a in reached):
                return False
        return name not in traced.outputs

    found = all(reaches_products(name, a) for name, a in weights) and _read_only_by(traced, gain, products)
    return frozenset(products.values()) if found else None


def _variable(traced, tensor, axis):
    """Returns the resource that a tensor is a reshaped copy of, with the axis, or None."""
    while tensor.name not in traced.variables:
        carried = sources(tensor.op, axis) if tensor.op.type in _COPYING else None
        if not carried:
            return None
        [(number, axis)] = carried
        tensor = tensor.op.inputs[number]
    return tensor.name, axis


def _read_only_by(traced, name, products):
    """Whether nothing but these products reads a tensor."""
    for operation, _ in traced.consumers[name]:
        if operation.name not in products and (
            operation.type not in _COPYING or not _read_only_by(traced, operation.outputs[0].name, products)
        ):
            return False
    return name not in traced.outputs
