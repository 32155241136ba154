"""Follows an axis through TensorFlow's operations, from an output to the inputs and from an input to the outputs.

An operation carries an axis if the mean of its output over that axis comes from some inputs alone, each along an axis
of its own: if they have zero mean, so has the output; a constant added to one of them adds a constant to the output. A
sum carries the axes of its operands; a matrix product carries the last axis of its second operand.

Axes are negative, counted from the end.
"""

import tensorflow as tf

from rmsnorm_tf.conversion.graph.rules import PRODUCTS, RULES, Sources, letters, sums_all_channels

# Operations that read nothing but the shape of their inputs.
SHAPE_ONLY = frozenset({"Shape", "ShapeN", "Rank", "Size", "VariableShape", "ZerosLike", "OnesLike"})


def sources(operation: tf.Operation, axis: int, output: int = 0) -> Sources | None:
    """Returns where the mean of an output over an axis comes from, or None if the operation does not carry it."""
    rule = RULES.get(operation.type)
    if rule is None or operation.outputs[output].shape.rank is None or -axis > operation.outputs[output].shape.rank:
        return None
    return rule(operation, axis, output)


def targets(operation: tf.Operation, position: int, axis: int) -> list[tuple[int, int]] | None:
    """Returns the outputs, with their axes, to which an input's axis is carried, or None if it is not to all."""
    found = []
    for output, tensor in enumerate(operation.outputs):
        axes = range(-(tensor.shape.rank or 0), 0)
        own = [a for a in axes if (position, axis) in (sources(operation, a, output) or [])]
        if not own:
            return None
        found += [(output, a) for a in own]
    return found


def contracted_with(operation: tf.Operation, position: int, axis: int) -> tuple[int, int] | None:
    """Returns the input, with its axis, over which a product sums together with an axis of another input, or None."""
    if operation.type == "Einsum":
        operands, _ = letters(operation)
        letter = operands[position][axis]
        if len(operands) == 2 and letter in operands[1 - position] and letter not in letters(operation)[1]:
            return 1 - position, operands[1 - position].index(letter) - len(operands[1 - position])
    elif operation.type in PRODUCTS:
        flipped = [operation.get_attr(name) for name in PRODUCTS[operation.type]]
        summed = (-2 if flipped[0] else -1, -1 if flipped[1] else -2)
        if summed[position] == axis:
            return 1 - position, summed[1 - position]
    elif operation.type in ("Conv2D", "Conv3D") and position == 0 and axis == -1 and sums_all_channels(operation):
        return 1, -2
    return None
