"""The gain of a norm, multiplied into the linear maps that read its output.

With y = n * g, where n is the normalized input, y W = n (diag(g) W). An offset becomes offset / g, because
n * g + offset = (n + offset / g) * g.
"""

from collections.abc import Callable, Collection

import keras
import numpy as np
import tensorflow as tf

from rmsnorm_tf.conversion.copy import walk
from rmsnorm_tf.conversion.graph.axes import SHAPE_ONLY, contracted_with, sources, targets
from rmsnorm_tf.conversion.graph.trace import Trace, gain_and_offset, trace
from rmsnorm_tf.conversion.reasons import listed
from rmsnorm_tf.conversion.saved import Changes
from rmsnorm_tf.norm.layer import RMSNormalization

_PASSING = frozenset({"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "ReadVariableOp"})

# Below this part of the largest gain, dividing the offset by a gain would cost too much precision.
SMALLEST_GAIN = 1e-3


def fold_gains(
    model: keras.Model, modes: Collection[bool], why_fixed: Callable[[keras.Variable], str | None]
) -> dict[str, tuple[bool, str]]:
    """Folds gains of RMSNormalizations into linear maps, in place, wherever all readers of a norm are linear maps.

    Args:
        model: The model to change.
        modes: The values of `training` that the model is to be called with.
        why_fixed: Returns why a variable must keep its value, or None.

    Returns:
        For the name of each norm with a gain, whether it was folded, and where it went or why it stays.
    """
    layers = list(walk(model))
    names = {id(weight): name for _, name, layer in layers for weight in layer.weights}
    norms = [(path, name, layer) for path, name, layer in layers if _has_gain(layer)]
    traced = trace(model, modes, [layer for _, _, layer in norms])
    changes, report = Changes(model), {}
    for path, name, norm in norms:
        weights = _weights_behind(traced, norm, why_fixed)
        gain, offset = (None if t is None else np.asarray(t) for t in gain_and_offset(norm))
        if offset is not None and np.min(abs(gain)) <= SMALLEST_GAIN * np.max(abs(gain)):
            weights = "it has entries near zero, by which the offset would be divided"
        if isinstance(weights, str):
            report[name] = False, f"gain stays: {weights}"
            continue
        report[name] = True, f"gain folded into {listed(sorted(names[id(weight)] for weight, _ in weights))}"
        for weight, axis in weights:
            weight.assign(weight.numpy() * gain.reshape([-1] + [1] * (-axis - 1)))
        if offset is not None:
            norm.offset.assign(offset / gain)
        config = {**norm.get_config(), "scale": False, "zero_centered_scale": False}
        changes.turn_into(path, RMSNormalization.from_config(config))
    changes.make()
    return report


def _has_gain(layer):
    if type(layer) is not RMSNormalization or not layer.built or not layer.use_scale:
        return False
    last = (-1, len(layer.get_build_config()["input_shape"]) - 1)
    return layer.axis in last and layer.scale_axis in (None, *last) and layer.partial is None


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
        if operation.type in SHAPE_ONLY:
            continue
        summed = contracted_with(operation, position, axis)
        weight = summed and _variable(traced, operation.inputs[summed[0]], summed[1])
        if weight:
            name, along = weight
            if found.setdefault(name, along) != along:
                return f"{traced.variables[name].path} is multiplied along two of its axes"
            products.add(operation.name)
            continue
        reached = targets(operation, position, axis) if operation.type in _PASSING else None
        if reached is None and operation.type == "Reshape" and axis == -1 and operation.outputs[0].shape.rank == 2:
            reached = [(0, -1)]  # of unknown size, before a matrix product that only the same last axis fits
        if reached is None:
            reader = traced.call_of(operation)
            return f"its output also goes to {reader.layer.name if reader else operation.name} ({operation.type})"
        for number, a in reached:
            if why := _follow(traced, operation.outputs[number], a, found, products):
                return why
    return None


def _variable(traced, tensor, axis):
    """Returns the resource that a tensor is a reshaped copy of, with the axis, or None."""
    while tensor.name not in traced.variables:
        carried = sources(tensor.op, axis) if tensor.op.type in _PASSING else None
        if not carried:
            return None
        [(position, axis)] = carried
        tensor = tensor.op.inputs[position]
    return tensor.name, axis


def _read_only_by(traced, name, products):
    """Whether nothing but these products reads a tensor."""
    for operation, _ in traced.consumers[name]:
        if operation.type in SHAPE_ONLY or operation.name in products:
            continue
        if operation.type not in _PASSING or not _read_only_by(traced, operation.outputs[0].name, products):
            return False
    return name not in traced.outputs
