"""Gains that linear maps take over: that of a LayerScale, by the maps before it; that of a norm, by those behind it.

With y = n * g, where n is the normalized input, y W = n (diag(g) W). An offset becomes offset / g, because
n * g + offset = (n + offset / g) * g. A LayerScale multiplies the columns of W instead: (x W) * g = x (W diag(g)).
A gain moves only through operations that keep the entries of its axis in order.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import contracted_with, size, sources, targets
from rmsnorm_tf.conversion.folding.trace import Trace, gain_and_offset, trace
from rmsnorm_tf.conversion.model.layers import Path, walk
from rmsnorm_tf.conversion.model.report import Conversion, listed
from rmsnorm_tf.conversion.model.saved import make_changes, new_changes
from rmsnorm_tf.norm.layer import RMSNormalization

# Operations whose output is a reshaped copy of an input.
_COPYING = frozenset(
    {"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "ReadVariableOp", "BroadcastTo"}
)

# Below this part of the largest gain, dividing the offset by a gain would cost too much precision.
SMALLEST_GAIN = 1e-3


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


def multiply(weight: keras.Variable, axis: int, gain: np.ndarray) -> None:
    """Multiplies a weight by a vector along a negative axis."""
    weight.assign(weight.numpy() * gain.reshape([-1] + [1] * (-axis - 1)))


def fold_gains(
    model: keras.Model,
    modes: Collection[bool | None],
    why_fixed: Callable[[keras.Variable], str | None],
) -> dict[Path, Conversion]:
    """Folds gains of RMSNormalizations into linear maps, in place, wherever all readers of a norm are linear maps.

    Returns what happened to the gain of each norm that has one, by path: two layers inside one may have the same name.
    """
    layers = list(walk(model))
    names = {id(weight): name for _, name, layer in layers for weight in layer.weights}
    norms = [each for each in layers if type(each[2]) is RMSNormalization and each[2].built and each[2].use_scale]
    why_not = {path: _why_not_last(norm) for path, _, norm in norms}
    traced = trace(model, modes, [norm for path, _, norm in norms if why_not[path] is None])
    changes, report = new_changes(), {}
    for path, name, norm in norms:
        weights = why_not[path] or _weights_behind(traced, norm, why_fixed)
        gain, offset = gain_and_offset(norm)
        gain = np.asarray(gain)
        if offset is not None and np.min(abs(gain)) <= SMALLEST_GAIN * np.max(abs(gain)):
            weights = "it has entries near zero, by which the offset would be divided"
        elif not gain.all():
            weights = "it has entries of 0, which the weights behind it would not recover from in training"
        if isinstance(weights, str):
            report[path] = Conversion(name, False, f"gain stays: {weights}")
            continue
        into = listed(sorted(names[id(weight)] for weight, _ in weights))
        report[path] = Conversion(name, True, f"gain folded into {into}")
        for weight, axis in weights:
            multiply(weight, axis, gain)
        if offset is not None:
            norm.offset.assign(np.asarray(offset) / gain)
        config = {**norm.get_config(), "scale": False, "zero_centered_scale": False}
        changes[path]["norm"] = keras.saving.serialize_keras_object(RMSNormalization.from_config(config))
    make_changes(model, changes)
    return report


def _why_not_last(norm):
    """Returns why the gain of a norm is not one along the last axis, or None. The statistic may run over any axes."""
    rank = len(norm.get_build_config()["input_shape"])
    along = norm.axis if norm.scale_axis is None else norm.scale_axis
    axes = along if isinstance(along, tuple) else (along,)
    if [axis % rank for axis in axes] == [rank - 1]:
        return None
    return f"it is along axis {listed(list(map(str, axes)))}, and only gains along the last axis alone are folded"


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
    found = sources(tensor.op, axis, tensor.value_index, in_order=True)
    if not found or tensor.name in traced.normalized:
        return None
    whole = frozenset()
    for number, a, _ in found:
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
            reached = targets(operation, position, along, in_order=True) if linear else None
            if not reached or not all(reaches_products(operation.outputs[n].name, a) for n, a, _ in reached):
                return False
        return name not in traced.outputs

    found = all(reaches_products(name, a) for name, a in weights) and _read_only_by(traced, gain, products)
    return frozenset(products.values()) if found else None


def _weights_behind(traced: Trace, norm, why_fixed):
    """Returns the variables that multiply a norm's outputs, each with its axis, or why the gain cannot be folded."""
    calls = [call for call in traced.calls if call.layer is norm]
    if not calls or any(not isinstance(call.output, tf.Tensor) for call in calls):
        return "the model does not call it"
    if None in traced.norms[id(norm)]:
        return "the norm is called in a loop or in another function, which is not looked into"
    for weight in norm.weights:
        if why := why_fixed(weight):
            return why
    found: dict[str, int] = {}
    products: set[str] = set()
    for call in calls:
        if why := _follow(traced, call.output, -1, found, products):
            return why
    for name in found:
        variable = traced.variables[name]
        if why := why_fixed(variable):
            return why
        if variable.shape[found[name]] != norm.scale.shape[0] or not _read_only_by(traced, name, products):
            return f"{variable.path} has other uses"
    return [(traced.variables[name], axis) for name, axis in found.items()]


def _follow(traced, tensor, axis, found, products):
    """Collects the weights that multiply a tensor over an axis. Returns a message on another reader, or None."""
    if tensor.name in traced.outputs:
        return "its output is an output of the model"
    for operation, position in traced.consumers[tensor.name]:
        summed = contracted_with(operation, position, axis)
        weight = summed and _variable(traced, operation.inputs[summed.number], summed.axis)
        if weight:
            name, along = weight
            if found.setdefault(name, along) != along:
                return f"{traced.variables[name].path} is multiplied along two of its axes"
            products.add(operation.name)
            continue
        reached = targets(operation, position, axis) if operation.type in _COPYING else None
        if reached is None and operation.type == "Reshape" and axis == -1 and operation.outputs[0].shape.rank == 2:
            reached = [(0, -1)]  # of unknown size, before a matrix product that only the same last axis fits
        if reached is None:
            reader = traced.call_of(operation)
            return f"its output also goes to {reader.layer.name if reader else operation.name} ({operation.type})"
        for number, a, *_ in reached:
            if why := _follow(traced, operation.outputs[number], a, found, products):
                return why
    return None


def _variable(traced, tensor, axis):
    """Returns the resource that a tensor is a reshaped copy of, with the axis, or None."""
    while tensor.name not in traced.variables:
        carried = sources(tensor.op, axis) if tensor.op.type in _COPYING else None
        if not carried:
            return None
        [(number, axis, _)] = carried
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
