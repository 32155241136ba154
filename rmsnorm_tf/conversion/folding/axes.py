"""Follows an axis through TensorFlow's operations, from an output to the inputs and from an input to the outputs.

An operation carries an axis if the mean of its output over that axis comes from some inputs alone, each along an axis
of its own: if they have zero mean, so has the output; a constant added to one of them adds a constant to the output. A
sum carries the axes of its operands; a matrix product carries the last axis of its second operand. Most operations also
keep the entries along the axis in order; a roll keeps only their mean.

Axes are negative, counted from the end.
"""

import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import PRODUCTS, RULES, Place, letters, sums_all_channels

# Operations that read nothing but the shape of their inputs.
SHAPE_ONLY = frozenset({"Shape", "ShapeN", "Rank", "Size", "VariableShape", "ZerosLike", "OnesLike"})


def sources(operation: tf.Operation, axis: int, output: int = 0, *, in_order: bool = False) -> list[Place] | None:
    """Returns where the mean of an output over an axis comes from, or None if the operation does not carry it.

    Args:
        operation: The operation.
        axis: The axis of the output.
        output: The number of the output.
        in_order: Whether entry i must come from entry i too. Default: False, the mean counts alone.
    """
    rule = RULES.get(operation.type)
    if rule is None or operation.outputs[output].shape.rank is None or -axis > operation.outputs[output].shape.rank:
        return None
    found = rule(operation, axis, output)
    return None if found and in_order and not all(place.in_order for place in found) else found


def targets(operation: tf.Operation, number: int, axis: int, *, in_order: bool = False) -> list[Place] | None:
    """Returns the outputs, with their axes, to which an input's axis is carried, or None if it is not to all."""
    found = []
    for output, tensor in enumerate(operation.outputs):
        axes = range(-(tensor.shape.rank or 0), 0)
        reached = [(a, sources(operation, a, output, in_order=in_order) or []) for a in axes]
        own = [Place(output, a, p.in_order) for a, places in reached for p in places if p[:2] == (number, axis)]
        if not own:
            return None
        found += own
    return found


def contracted_with(operation: tf.Operation, number: int, axis: int) -> Place | None:
    """Returns the input, with its axis, over which a product sums together with an axis of another input, or None."""
    if operation.type == "Einsum":
        operands, result = letters(operation)
        letter, other = operands[number][axis], 1 - number
        if len(operands) == 2 and letter in operands[other] and letter not in result:
            return Place(other, operands[other].index(letter) - len(operands[other]))
    elif operation.type in PRODUCTS:
        flipped = [operation.get_attr(name) for name in PRODUCTS[operation.type]]
        summed = (-2 if flipped[0] else -1, -1 if flipped[1] else -2)
        if summed[number] == axis:
            return Place(1 - number, summed[1 - number])
    elif operation.type in ("Conv2D", "Conv3D") and number == 0 and axis == -1 and sums_all_channels(operation):
        return Place(1, -2)
    return None
