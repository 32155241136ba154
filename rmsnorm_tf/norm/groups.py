"""An axis cut into groups: tensors gain an axis of groups, and the equation moves to the entries of each group."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from rmsnorm_tf.norm.arguments import Equation


def equation_of_a_group(equation: Equation) -> Equation:
    """Returns the equation for tensors whose axis became `[groups, entries of a group]`."""
    [axis] = equation.axes
    scale_axes = [(axis, axis + 1) if a == axis else (a + (a > axis),) for a in equation.scale_axes]
    return dataclasses.replace(equation, axes=(axis + 1,), scale_axes=sum(scale_axes, ()), groups=1)


def in_groups(
    equation: Equation, tensors: Sequence[tf.Tensor], weights: Sequence[tf.Tensor], compute: Callable
) -> list[tf.Tensor]:
    """Calls `compute(tensors, weights)` with the axis cut into groups, and joins the groups of the results again."""
    [axis] = equation.axes
    cut_weights = weights
    if axis in equation.scale_axes:
        cut_weights = [_cut(weight, equation.scale_axes.index(axis), equation.groups) for weight in weights]
    results = compute([_cut(t, axis, equation.groups) for t in tensors], cut_weights)
    return [_reshape(result, tensors[0]) for result in results]


def _cut(t, axis, groups):
    """Reshapes `[..., size, ...]` to `[..., groups, size // groups, ...]`."""
    sizes = _sizes(t)
    return tf.reshape(t, [*sizes[:axis], groups, sizes[axis] // groups, *sizes[axis + 1 :]])


def _reshape(t, like):
    return tf.ensure_shape(tf.reshape(t, _sizes(like)), like.shape)


def _sizes(t):
    """Returns the sizes of t, as tensors where they are unknown; a single unknown size is -1."""
    unknown = [a for a, size in enumerate(t.shape) if size is None]
    if len(unknown) < 2 and 0 not in t.shape:
        return [-1 if size is None else size for size in t.shape]
    dynamic = tf.shape(t)
    return [dynamic[a] if size is None else size for a, size in enumerate(t.shape)]
