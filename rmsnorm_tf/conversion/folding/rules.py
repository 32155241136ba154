"""Follows an axis through TensorFlow's operations, backwards to inputs and forwards to outputs.

An operation carries an axis if the mean of its output over that axis comes from some inputs alone,
each along an axis of its own: if they have zero mean, so has the output; a constant added to one of
them adds a constant to the output. A sum carries the axes of its operands; a matrix product carries
the last axis of its second operand.

Axes are negative, counted from the end.
"""

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

# The number of an input or of an output, and an axis of it.
Place = tuple[int, int]


def sources(operation: tf.Operation, axis: int, output: int = 0) -> list[Place] | None:
    """Returns where the mean of an output over an axis comes from, or None."""
    rule = RULES.get(operation.type)
    rank = operation.outputs[output].shape.rank
    if rule is None or rank is None or -axis > rank:
        return None
    return rule(operation, axis, output)


def targets(operation: tf.Operation, number: int, axis: int) -> list[Place] | None:
    """Returns where an input's axis is carried to in all outputs, or None if one lacks it."""
    found: list[Place] = []
    for n, tensor in enumerate(operation.outputs):
        axes = range(-(tensor.shape.rank or 0), 0)
        carried = [(n, a) for a in axes if (number, axis) in (sources(operation, a, n) or [])]
        if not carried:
            return None
        found += carried
    return found


def size(tensor: tf.Tensor, axis: int) -> int | None:
    """Returns the size of a tensor along an axis, 1 where broadcasting would add it."""
    if tensor.shape.rank is None:
        return None
    return 1 if -axis > tensor.shape.rank else tensor.shape[axis]


# The rules: each maps an operation, an axis and the number of an output to what `sources` returns.


def _every(operation, axis, output):
    """Follows a sum to all inputs. One of size 1 is constant along the axis."""
    return [(i, axis) for i in range(len(operation.inputs))]


def _first(operation, axis, output):
    return [(0, axis)]


def _bias(operation, axis, output):
    return _every(operation, axis, output) if axis == -1 and _has_channels_last(operation) else None


def _cast(operation, axis, output):
    tensors = (*operation.inputs, *operation.outputs)
    return [(0, axis)] if all(t.dtype.is_floating for t in tensors) else None


def _scaled(operation, axis, output):
    """Follows a product or quotient to the only operand with several entries along the axis."""
    varying = [i for i, tensor in enumerate(operation.inputs) if size(tensor, axis) != 1]
    carries = varying == [0] or (varying == [1] and operation.type == "Mul")
    return [(varying[0], axis)] if carries else None


def _select(operation, axis, output):
    return [(1, axis), (2, axis)] if size(operation.inputs[0], axis) == 1 else None


def _reshaped(operation, axis, output):
    """Finds the input's axis of the same size with as many entries after it."""
    before = operation.inputs[0].shape
    after = operation.outputs[0].shape
    wanted = _entries_from(after, axis)
    if wanted is not None and before.rank is not None:
        for a in range(-1, -before.rank - 1, -1):
            if before[a] == after[axis] and _entries_from(before, a) == wanted:
                return [(0, a)]
    return None


def _entries_from(shape, axis):
    sizes = shape[axis:].as_list()
    return None if None in sizes else math.prod(sizes)


def _same_size(operation, axis, output):
    """Follows an operation that changes other axes and keeps this one."""
    before = size(operation.inputs[0], axis)
    is_same = before is not None and before == operation.outputs[0].shape[axis]
    return [(0, axis)] if is_same else None


def _channels(operation, axis, output):
    """Follows an operation that treats all channels alike; they must be the last axis."""
    carries = axis == -1 and _has_channels_last(operation)
    return _same_size(operation, axis, output) if carries else None


def _has_channels_last(operation):
    return operation.node_def.attr["data_format"].s in (b"", b"NHWC", b"NDHWC")


def _conv(operation, axis, output):
    in_groups = operation.inputs[0].shape[-1] != operation.inputs[1].shape[-2]
    return [(1, -1)] if axis == -1 and _has_channels_last(operation) and not in_groups else None


def _matmul(operation, axis, output):
    flipped = [operation.get_attr(name) for name in _PRODUCTS[operation.type]]
    operand = {-1: 1, -2: 0}.get(axis)
    if operand is None:
        return None
    return [(operand, -3 - axis if flipped[operand] else axis)]


def _einsum(operation, axis, output):
    terms = re.split(",|->", operation.get_attr("equation").decode())
    tensors = [*operation.inputs, operation.outputs[0]]
    *operands, result = map(_without_ellipsis, terms, tensors)
    letter = result[axis]
    having = [i for i, term in enumerate(operands) if letter in term]
    if len(having) != 1 or operands[having[0]].count(letter) != 1 or result.count(letter) != 1:
        return None
    term = operands[having[0]]
    return [(having[0], term.index(letter) - len(term))]


def _without_ellipsis(term, tensor):
    """Replaces the ellipsis in a term of an equation by a Greek letter for each axis."""
    count = (tensor.shape.rank or 0) - len(term.replace("...", ""))
    return term.replace("...", "".join(chr(0x391 + i) for i in reversed(range(count))))


def _gathered(operation, axis, output):
    """Follows all axes of a table but the one that is looked up: of a resource, the first."""
    rank = operation.outputs[0].shape.rank
    indices = operation.inputs[1].shape.rank
    looked_up = 0 if operation.type == "ResourceGather" else _constant(operation, 2)
    if indices is None or looked_up is None or operation.get_attr("batch_dims"):
        return None
    axes = list(range(indices - rank - 1, 0))
    along = int(looked_up) % len(axes)
    found = [*axes[:along], *[None] * indices, *axes[along + 1 :]][axis]
    return None if found is None else [(0, found)]


def _of_axes(inputs: slice, axes_of_output: Callable[[tf.Operation, list[int]], list[Any] | None]):
    """Returns the rule of an operation whose output has whole axes of these inputs.

    The function takes the operation and the axes of these inputs. It returns for each axis of the
    output the one that it is, or None.
    """

    def rule(operation, axis, output):
        numbers = range(len(operation.inputs))[inputs]
        rank = operation.inputs[numbers[0]].shape.rank
        axes = None if rank is None else axes_of_output(operation, list(range(-rank, 0)))
        return None if axes is None or axes[axis] is None else [(i, axes[axis]) for i in numbers]

    return rule


def _constant(operation, number):
    return tf.get_static_value(operation.inputs[number])


def _except(number):
    """Returns a function that keeps all axes but those that an input names."""

    def axes_of_output(operation, axes):
        named = _constant(operation, number)
        named = axes if named is None else [axes[a] for a in np.atleast_1d(named)]
        return [None if a in named else a for a in axes]

    return axes_of_output


def _transposed(operation, axes):
    permutation = _constant(operation, 1)
    return None if permutation is None else [axes[a] for a in permutation]


def _reduced(operation, axes):
    kept = _except(1)(operation, axes)
    return kept if operation.get_attr("keep_dims") else [a for a in kept if a is not None] or None


def _sliced(operation, axes):
    """Keeps the axes that a slice takes whole, forwards or backwards."""
    strides = _constant(operation, 3)
    if strides is None:
        return None

    def has(mask, number):
        return operation.get_attr(f"{mask}_mask") >> number & 1

    named = sum(not has("ellipsis", i) and not has("new_axis", i) for i in range(len(strides)))
    left = iter(axes)
    kept = []
    for i, stride in enumerate(strides):
        if has("ellipsis", i):
            kept += itertools.islice(left, len(axes) - named)
        elif has("new_axis", i):
            kept.append(None)
        elif has("shrink_axis", i):
            next(left)
        else:
            axis = next(left)
            is_whole = has("begin", i) and has("end", i) and abs(stride) == 1
            kept.append(axis if is_whole else None)
    return [*kept, *left]


# The attributes that transpose the operands of matrix products.
_PRODUCTS = {
    "MatMul": ("transpose_a", "transpose_b"),
    "BatchMatMul": ("adj_x", "adj_y"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
    "BatchMatMulV3": ("adj_x", "adj_y"),
}

RULES: dict[str, Callable[[tf.Operation, int, int], list[Place] | None]] = {
    **dict.fromkeys(("Add", "AddV2", "AddN", "Sub"), _every),
    **dict.fromkeys(
        ("Identity", "Neg", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot"), _first
    ),
    **dict.fromkeys(("EnsureShape", "ReadVariableOp"), _first),
    "BiasAdd": _bias,
    "Cast": _cast,
    **dict.fromkeys(("Mul", "RealDiv"), _scaled),
    "SelectV2": _select,
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _reshaped),
    "Transpose": _of_axes(slice(1), _transposed),
    **dict.fromkeys(("Slice", "Tile", "BroadcastTo", "Pad", "MirrorPad"), _same_size),
    **dict.fromkeys(("AvgPool", "AvgPool3D", "SpaceToBatchND", "BatchToSpaceND"), _channels),
    **dict.fromkeys(
        ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ScaleAndTranslate"), _channels
    ),
    **dict.fromkeys(("Conv2D", "Conv3D"), _conv),
    **dict.fromkeys(_PRODUCTS, _matmul),
    "Einsum": _einsum,
    **dict.fromkeys(("GatherV2", "ResourceGather"), _gathered),
    "ConcatV2": _of_axes(slice(-1), _except(-1)),
    "Split": _of_axes(slice(1, 2), _except(0)),
    "SplitV": _of_axes(slice(1), _except(2)),
    **dict.fromkeys(("Mean", "Sum"), _of_axes(slice(1), _reduced)),
    "StridedSlice": _of_axes(slice(1), _sliced),
    **dict.fromkeys(("Roll", "ReverseV2"), _first),
}
