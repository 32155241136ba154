"""Follows an axis through TensorFlow's operations, from an output to the inputs and from an input
to the outputs.

An operation carries an axis if the mean of its output over that axis comes from some inputs alone,
each along an axis of its own: if they have zero mean, so has the output; a constant added to one of
them adds a constant to the output. A sum carries the axes of its operands; a matrix product carries
the last axis of its second operand.

Axes are negative, counted from the end.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

# The number of an input or of an output, and an axis of it.
Place = tuple[int, int]


def sources(operation: tf.Operation, axis: int, output: int = 0) -> list[Place] | None:
    """Returns where the mean of an output over an axis comes from, or None if the operation does not carry it."""
    rule = RULES.get(operation.type)
    if (
        rule is None
        or operation.outputs[output].shape.rank is None
        or -axis > operation.outputs[output].shape.rank
    ):
        return None
    return rule(operation, axis, output)


def targets(operation: tf.Operation, number: int, axis: int) -> list[Place] | None:
    """Returns the outputs, with their axes, to which an input's axis is carried, or None if it is not to all."""
    found = [
        [
            (n, a)
            for a in range(-(t.shape.rank or 0), 0)
            if (number, axis) in (sources(operation, a, n) or [])
        ]
        for n, t in enumerate(operation.outputs)
    ]
    return [place for places in found for place in places] if all(found) else None


def size(tensor: tf.Tensor, axis: int) -> int | None:
    """Returns the size of a tensor along an axis, 1 where broadcasting would add it."""
    if tensor.shape.rank is None:
        return None
    return 1 if -axis > tensor.shape.rank else tensor.shape[axis]


# Rules: each maps an operation, an axis and the number of an output to the places that `sources`
# returns.


def _every(operation, axis, output):
    """A sum: all inputs. One of size 1 is constant along the axis."""
    return [(i, axis) for i in range(len(operation.inputs))]


def _first(operation, axis, output):
    return [(0, axis)]


def _bias(operation, axis, output):
    return _every(operation, axis, output) if axis == -1 and _has_channels_last(operation) else None


def _cast(operation, axis, output):
    return (
        [(0, axis)]
        if all(t.dtype.is_floating for t in (*operation.inputs, *operation.outputs))
        else None
    )


def _scaled(operation, axis, output):
    """A product or quotient, in which one operand has more than one entry along the axis."""
    varying = [i for i, tensor in enumerate(operation.inputs) if size(tensor, axis) != 1]
    return (
        [(varying[0], axis)]
        if varying == [0] or (varying == [1] and operation.type == "Mul")
        else None
    )


def _select(operation, axis, output):
    return [(1, axis), (2, axis)] if size(operation.inputs[0], axis) == 1 else None


def _reshaped(operation, axis, output):
    """The input's axis of the same size with the same number of entries after it."""
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
    """An operation that changes other axes and keeps this one."""
    before = size(operation.inputs[0], axis)
    return (
        [(0, axis)] if before is not None and before == operation.outputs[0].shape[axis] else None
    )


def _channels(operation, axis, output):
    """An operation that treats all channels alike; they must be the last axis."""
    return (
        _same_size(operation, axis, output)
        if axis == -1 and _has_channels_last(operation)
        else None
    )


def _has_channels_last(operation):
    return operation.node_def.attr["data_format"].s in (b"", b"NHWC", b"NDHWC")


def _conv(operation, axis, output):
    in_groups = operation.inputs[0].shape[-1] != operation.inputs[1].shape[-2]
    return [(1, -1)] if axis == -1 and _has_channels_last(operation) and not in_groups else None


def _matmul(operation, axis, output):
    flipped = [operation.get_attr(name) for name in _PRODUCTS[operation.type]]
    if axis == -1:
        return [(1, -2 if flipped[1] else -1)]
    return [(0, -1 if flipped[0] else -2)] if axis == -2 else None


def _einsum(operation, axis, output):
    dots = "".join(
        chr(0x391 + i) for i in range(20)
    )  # no letters of an equation: the axes of an ellipsis
    written = []
    names = re.split(",|->", operation.get_attr("equation").decode())
    for name, tensor in zip(names, [*operation.inputs, operation.outputs[0]], strict=True):
        count = (tensor.shape.rank or 0) - len(name.replace("...", ""))
        written.append(name.replace("...", dots[20 - count :] if count else ""))
    *operands, result = written
    letter = result[axis]
    having = [
        (i, name.index(letter) - len(name)) for i, name in enumerate(operands) if letter in name
    ]
    if len(having) != 1 or operands[having[0][0]].count(letter) != 1 or result.count(letter) != 1:
        return None
    return having


def _gathered(operation, axis, output):
    """The table's axes, before and after the one that is looked up: of a resource, the first."""
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
    """Returns the rule of an operation, some inputs of which have whole axes in common with the
    output.

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
    """All axes but those that an input names."""

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


def _packed(operation, axes):
    along = operation.get_attr("axis") % (len(axes) + 1)
    return [*axes[:along], None, *axes[along:]]


def _unpacked(operation, axes):
    along = axes[operation.get_attr("axis")]
    return [a for a in axes if a != along]


def _strided_slice(operation, axis, output):
    """Cuts an array, of which each axis shows in its strides, that are powers of 2."""
    strides = _constant(operation, 3)
    if strides is None or operation.inputs[0].shape.rank is None:
        return None

    def part(i, stride):
        def has(mask):
            return operation.get_attr(f"{mask}_mask") >> i & 1

        if has("ellipsis") or has("new_axis"):
            return ... if has("ellipsis") else None
        whole = has("begin") and has("end") and abs(stride) == 1
        return 0 if has("shrink_axis") else slice(None, None, stride) if whole else slice(1)

    cut = np.empty([2] * operation.inputs[0].shape.rank, np.int8)[
        tuple(map(part, range(len(strides)), strides))
    ]
    return [(0, -abs(cut.strides[axis]).bit_length())] if cut.shape[axis] == 2 else None


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
    "Pack": _of_axes(slice(None), _packed),
    "Unpack": _of_axes(slice(1), _unpacked),
    "Split": _of_axes(slice(1, 2), _except(0)),
    "SplitV": _of_axes(slice(1), _except(2)),
    **dict.fromkeys(("Mean", "Sum"), _of_axes(slice(1), _reduced)),
    "StridedSlice": _strided_slice,
    **dict.fromkeys(("Roll", "ReverseV2"), _first),
}
