"""A gain per channel behind an affine map, as LayerScale has it: which weights can take it over."""

from dataclasses import dataclass

import tensorflow as tf

from rmsnorm_tf.conversion.graph.axes import SHAPE_ONLY, sources, targets
from rmsnorm_tf.conversion.graph.rules import size
from rmsnorm_tf.conversion.graph.trace import Trace

_RESHAPING = frozenset({"Reshape", "ExpandDims", "Squeeze", "Cast", "Identity", "ReadVariableOp", "BroadcastTo"})


@dataclass(frozen=True)
class Absorbed:
    """A gain, and the weights that can be multiplied by it so that the gain becomes 1.

    Attributes:
        gain: The resource of the gain.
        weights: The resources of the weights, each with the axis of the channels.
    """

    gain: str
    weights: frozenset[tuple[str, int]]


def gain_to_absorb(traced: Trace, operation: tf.Operation, axis: int) -> Absorbed | None:
    """Returns how weights take over the gain that an operation multiplies by, or None if they cannot."""
    if operation.type != "Mul":
        return None
    for x, factor in (operation.inputs, reversed(operation.inputs)):
        gain = _variable_alone(traced, factor, axis)
        weights = gain and _weights_of(traced, x, axis)
        if weights and _only_in_products(traced, gain, weights, axis):
            return Absorbed(gain, weights)
    return None


def _variable_alone(traced, tensor, axis):
    """Returns the resource of which a tensor is a reshaped copy, one entry per channel, or None."""
    channels = size(tensor, axis)
    while tensor.name not in traced.variables:
        found = sources(tensor.op, axis)
        if tensor.op.type not in _RESHAPING or not found:
            return None
        [(position, axis)] = found
        tensor = tensor.op.inputs[position]
    return tensor.name if tuple(s for s in traced.variables[tensor.name].shape if s != 1) == (channels,) else None


def _weights_of(traced, tensor, axis):
    """Returns the weights that a tensor is linear in along an axis, or None if anything else is added to it."""
    if tensor.name in traced.variables:
        return frozenset({(tensor.name, axis)})
    found = sources(tensor.op, axis)
    if not found or tensor.name in traced.normalized:
        return None
    whole = frozenset()
    for position, a in found:
        inner = tensor.op.inputs[position]
        part = None if size(inner, a) == 1 and inner.dtype != tf.resource else _weights_of(traced, inner, a)
        if part is None:
            return None
        whole |= part
    return whole


def _only_in_products(traced, gain, weights, axis):
    """Whether the gain multiplies nothing but these weights, and they go nowhere else."""
    products = set()

    def reaches_products(name, along):
        for operation, position in traced.consumers[name]:
            if operation.type in SHAPE_ONLY:
                continue
            if operation.type == "Mul" and _variable_alone(traced, operation.inputs[1 - position], along) == gain:
                products.add(operation.name)
                continue
            linear = operation.outputs and operation.outputs[0].name not in traced.normalized
            reached = targets(operation, position, along) if linear else None
            if not reached or not all(reaches_products(operation.outputs[n].name, a) for n, a in reached):
                return False
        return name not in traced.outputs

    def multiplies_nothing_else(name):
        for operation, _ in traced.consumers[name]:
            if operation.type in SHAPE_ONLY or operation.name in products:
                continue
            if operation.type not in _RESHAPING or not multiplies_nothing_else(operation.outputs[0].name):
                return False
        return name not in traced.outputs

    return all(reaches_products(name, a) for name, a in weights) and multiplies_nothing_else(gain)
