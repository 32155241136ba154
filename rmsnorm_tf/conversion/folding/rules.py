"""For each kind of TensorFlow operation, where the mean of an output over an axis comes from.

A rule maps an operation, a negative axis and the number of an output to the inputs that the mean comes from, or to None
if the operation does not carry the axis.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Place(NamedTuple):
    """An axis of an input or of an output of an operation.

    Attributes:
        number: Which input or output.
        axis: The axis.
        in_order: Whether the entries along the axis have the same order at both ends of the operation.
    """

    number: int
    axis: int
    in_order: bool = True


def size(tensor: tf.Tensor, axis: int) -> int | None:
    """Returns the size of a tensor along an axis, 1 where broadcasting would add it."""
    if tensor.shape.rank is None:
        return None
    return 1 if -axis > tensor.shape.rank else tensor.shape[axis]


def _every(operation, axis, output):
    """A sum: all inputs. One of size 1 is constant along the axis."""
    return [Place(i, axis) for i in range(len(operation.inputs))]


def _first(operation, axis, output):
    return [Place(0, axis)]


def _bias(operation, axis, output):
    if operation.get_attr("data_format") == b"NHWC" and axis == -1:
        return [Place(0, -1), Place(1, -1)]
    return None


def _cast(operation, axis, output):
    return (
        [Place(0, axis)] if operation.inputs[0].dtype.is_floating and operation.outputs[0].dtype.is_floating else None
    )


def _varying(operation, axis):
    """Returns the operands of a product or a quotient that have more than one entry along an axis."""
    return [i for i, tensor in enumerate(operation.inputs) if size(tensor, axis) != 1]


def _product(operation, axis, output):
    varying = _varying(operation, axis)
    return [Place(varying[0], axis)] if len(varying) == 1 else None


def _quotient(operation, axis, output):
    return [Place(0, axis)] if _varying(operation, axis) == [0] else None


def _select(operation, axis, output):
    return [Place(1, axis), Place(2, axis)] if size(operation.inputs[0], axis) == 1 else None


def _reshaped(operation, axis, output):
    """The input's axis of the same size with the same number of entries after it."""
    before, after = operation.inputs[0].shape, operation.outputs[0].shape
    if before.rank is None:
        return None
    wanted = _entries_from(after, axis)
    for a in range(-1, -before.rank - 1, -1):
        if wanted is not None and before[a] == after[axis] and _entries_from(before, a) == wanted:
            return [Place(0, a)]
    return None


def _entries_from(shape, axis):
    sizes = shape[axis:].as_list()
    return None if None in sizes else math.prod(sizes)


def _transposed(operation, axis, output):
    permutation = tf.get_static_value(operation.inputs[1])
    return None if permutation is None else [Place(0, int(permutation[axis]) - len(permutation))]


def _same_size(operation, axis, output):
    """An operation that changes other axes and keeps this one."""
    before = size(operation.inputs[0], axis)
    return [Place(0, axis)] if before is not None and before == operation.outputs[0].shape[axis] else None


def _channels(operation, axis, output):
    """An operation that treats all channels alike; they must be the last axis."""
    if operation.type in ("SpaceToBatchND", "BatchToSpaceND"):  # blocks of the axes 1 to n
        blocks = operation.inputs[1].shape[0]
        return [Place(0, -1)] if axis == -1 and blocks and blocks < operation.outputs[0].shape.rank - 1 else None
    try:
        last = operation.get_attr("data_format") in (b"NHWC", b"NDHWC")
    except ValueError:
        last = True
    return [Place(0, -1)] if axis == -1 and last else None


def sums_all_channels(operation):
    """Returns whether a convolution has its channels last and a single group."""
    last = operation.get_attr("data_format") in (b"NHWC", b"NDHWC")
    return last and operation.inputs[0].shape[-1] == operation.inputs[1].shape[-2]


def _conv(operation, axis, output):
    return [Place(1, -1)] if axis == -1 and sums_all_channels(operation) else None


def _matmul(operation, axis, output):
    flipped = [operation.get_attr(name) for name in PRODUCTS[operation.type]]
    if axis == -1:
        return [Place(1, -2 if flipped[1] else -1)]
    return [Place(0, -1 if flipped[0] else -2)] if axis == -2 else None


def letters(operation):
    """Returns the axes of the operands and of the output of an einsum, an ellipsis written out."""
    operands, output = operation.get_attr("equation").decode().split("->")
    names = [*operands.split(","), output]
    tensors = [*operation.inputs, operation.outputs[0]]
    dots = [chr(0x391 + i) for i in range(20)]  # no letters of an equation
    written = []
    for name, tensor in zip(names, tensors, strict=True):
        count = (tensor.shape.rank or 0) - len(name.replace("...", ""))
        written.append(name.replace("...", "".join(dots[20 - count :]) if count else ""))
    return written[:-1], written[-1]


def _einsum(operation, axis, output):
    operands, result = letters(operation)
    letter = result[axis]
    having = [Place(i, name.index(letter) - len(name)) for i, name in enumerate(operands) if letter in name]
    if len(having) != 1 or operands[having[0][0]].count(letter) != 1 or result.count(letter) != 1:
        return None
    return having


def _gathered(operation, axis, output):
    """The table's axes, before and after the one that is looked up."""
    table, indices, looked_up = operation.inputs
    looked_up = tf.get_static_value(looked_up)
    if looked_up is None or operation.get_attr("batch_dims") or table.shape.rank is None or indices.shape.rank is None:
        return None
    looked_up = int(looked_up) % table.shape.rank
    position = axis + operation.outputs[0].shape.rank
    if position < looked_up:
        return [Place(0, position - table.shape.rank)]
    return [Place(0, axis)] if position >= looked_up + indices.shape.rank else None


def _gathered_rows(operation, axis, output):
    rank = operation.inputs[1].shape.rank
    if operation.get_attr("batch_dims") or rank is None:
        return None
    return [Place(0, axis)] if axis + operation.outputs[0].shape.rank >= rank else None


def _concatenated(operation, axis, output):
    along = tf.get_static_value(operation.inputs[-1])
    rank = operation.outputs[0].shape.rank
    if along is None or int(along) % rank == axis + rank:
        return None
    return [Place(i, axis) for i in range(len(operation.inputs) - 1)]


def _packed(operation, axis, output):
    rank = operation.outputs[0].shape.rank
    along, position = operation.get_attr("axis") % rank, axis + rank
    if along == position:
        return None
    return [Place(i, axis if position > along else axis + 1) for i in range(len(operation.inputs))]


def _unpacked(operation, axis, output):
    rank = operation.inputs[0].shape.rank
    along = operation.get_attr("axis") % rank - rank
    return [Place(0, axis if axis > along else axis - 1)]


def _split(position, along):
    def rule(operation, axis, output):
        value = tf.get_static_value(operation.inputs[along])
        rank = operation.outputs[output].shape.rank
        return None if value is None or int(value) % rank == axis + rank else [Place(position, axis)]

    return rule


def _padded(operation, axis, output):
    paddings = tf.get_static_value(operation.inputs[1])
    return [Place(0, axis)] if paddings is not None and not np.any(paddings[axis]) else None


def _reduced(operation, axis, output):
    """A sum or a mean over other axes."""
    over = tf.get_static_value(operation.inputs[1])
    if over is None or operation.inputs[0].shape.rank is None:
        return None
    rank = operation.inputs[0].shape.rank
    over = {int(a) % rank for a in np.atleast_1d(over)}
    kept = [a for a in range(rank) if operation.get_attr("keep_dims") or a not in over]
    return None if kept[axis] in over else [Place(0, kept[axis] - rank)]


def _strided_slice(operation, axis, output):
    """Walks over the entries of the slice from the end, where each stands for an axis."""
    strides = tf.get_static_value(operation.inputs[3])
    if strides is None or operation.inputs[0].shape.rank is None:
        return None
    bits = {
        name: [bool(operation.get_attr(name) >> i & 1) for i in range(len(strides))]
        for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    }
    named = sum(not bits["ellipsis_mask"][i] and not bits["new_axis_mask"][i] for i in range(len(strides)))
    kept = []  # for each axis of the output: the input's axis if all of it is kept
    backwards: set[int] = set()
    position = 0
    entries = list(range(len(strides)))
    if not any(bits["ellipsis_mask"]):
        entries.append(None)
    for entry in entries:
        if entry is None or bits["ellipsis_mask"][entry]:
            rest = operation.inputs[0].shape.rank - named
            kept += range(position, position + rest)
            position += rest
        elif bits["new_axis_mask"][entry]:
            kept.append(None)
        else:
            if not bits["shrink_axis_mask"][entry]:
                whole = bits["begin_mask"][entry] and bits["end_mask"][entry] and abs(strides[entry]) == 1
                kept.append(position if whole else None)
                backwards |= {position} if strides[entry] < 0 else set()
            position += 1
    found = kept[axis]
    return None if found is None else [Place(0, found - operation.inputs[0].shape.rank, found not in backwards)]


def _moved(along):
    """A roll or a reversal over the axes that an input holds."""

    def rule(operation, axis, output):
        over = tf.get_static_value(operation.inputs[along])
        rank = operation.outputs[0].shape.rank
        return [Place(0, axis, over is not None and axis % rank not in np.atleast_1d(over) % rank)]

    return rule


# The attributes that transpose the operands of matrix products.
PRODUCTS = {
    "MatMul": ("transpose_a", "transpose_b"),
    "BatchMatMul": ("adj_x", "adj_y"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
    "BatchMatMulV3": ("adj_x", "adj_y"),
}

RULES: dict[str, Callable[[tf.Operation, int, int], list[Place] | None]] = {
    **dict.fromkeys(("Add", "AddV2", "AddN", "Sub"), _every),
    **dict.fromkeys(("Identity", "Neg", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot"), _first),
    **dict.fromkeys(("EnsureShape", "ReadVariableOp"), _first),
    "BiasAdd": _bias,
    "Cast": _cast,
    "Mul": _product,
    "RealDiv": _quotient,
    "SelectV2": _select,
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _reshaped),
    "Transpose": _transposed,
    **dict.fromkeys(("Slice", "Tile", "BroadcastTo"), _same_size),
    **dict.fromkeys(("AvgPool", "AvgPool3D", "SpaceToBatchND", "BatchToSpaceND"), _channels),
    **dict.fromkeys(("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ScaleAndTranslate"), _channels),
    **dict.fromkeys(("Conv2D", "Conv3D"), _conv),
    **dict.fromkeys(PRODUCTS, _matmul),
    "Einsum": _einsum,
    "GatherV2": _gathered,
    "ResourceGather": _gathered_rows,
    "ConcatV2": _concatenated,
    "Pack": _packed,
    "Unpack": _unpacked,
    "Split": _split(1, 0),
    "SplitV": _split(0, 2),
    **dict.fromkeys(("Pad", "MirrorPad"), _padded),
    **dict.fromkeys(("Mean", "Sum"), _reduced),
    "StridedSlice": _strided_slice,
    "Roll": _moved(2),
    "ReverseV2": _moved(1),
}
