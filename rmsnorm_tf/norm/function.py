"""`rms_norm` and `add_rms_norm`: they check arguments and shapes, then call plain or compiled operations."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from rmsnorm_tf.norm.arguments import (
    Equation,
    check_axis,
    check_epsilon,
    check_flag,
    check_groups,
    check_partial,
    refuse_habits,
)
from rmsnorm_tf.norm.groups import equation_of_a_group, in_groups
from rmsnorm_tf.norm.tensorflow import gradient as _gradient
from rmsnorm_tf.norm.tensorflow.compiled import implementation
from rmsnorm_tf.norm.tensorflow.computation import GATED_NORM, NORM, NORM_OF_SUM, Computation


@tf.autograph.experimental.do_not_convert  # converting takes seconds, and there is nothing to convert
def rms_norm(
    x: tf.Tensor | tf.RaggedTensor,
    scale: tf.Tensor | None = None,
    offset: tf.Tensor | None = None,
    *,
    gate: tf.Tensor | None = None,
    axis: int | Sequence[int] = -1,
    scale_axis: int | Sequence[int] | None = None,
    partial: float | None = None,
    epsilon: float = 1e-6,
    groups: int = 1,
    fused: bool | None = None,
    **unknown: Any,
) -> tf.Tensor | tf.RaggedTensor:
    """Divides `x` by its root mean square over `axis`.

    The equation is `y = x / sqrt(mean(x**2, axis) + epsilon) * scale + offset`, with epsilon inside the root. The mean,
    the root and the products are computed in at least float32, in float64 for a float64 `x`, and `y` is rounded to the
    dtype of `x` at the end. A row whose squares overflow that dtype is normalized like any other. The gradient keeps
    `x` and one number per row, and can itself be differentiated. There is no mask: each row is normalized by itself, so
    padded rows do not affect the others.

    With a gate, the result is `y * silu(gate)`, rounded once, and the gradient keeps the gate as well.

    >>> rms_norm(tf.constant([[3.0, 4.0]]), epsilon=1e-12).numpy().round(4)
    array([[0.8485, 1.1314]], dtype=float32)

    Args:
        x: float16, bfloat16, float32 or float64, of known rank; or a ragged tensor whose last dimension is uniform,
            which is normalized over that dimension.
        scale: The gain, with one dimension for each of `scale_axis`, in the order of x's dimensions. Default: None, no
            gain.
        offset: Added after the gain, shaped like `scale`. Default: None, no offset.
        gate: Shape and dtype of `x`; `silu(gate) = gate * sigmoid(gate)` multiplies the result. Default: None, no gate.
        axis: Axis or axes of the mean, in any order; negative ones count from the end. Default: -1.
        scale_axis: Axis or axes of `scale` and `offset`. Default: None, the same as `axis`.
        partial: p in (0, 1]; the mean takes only the first `ceil(size * p)` entries of the single `axis`. Default:
            None, all entries.
        epsilon: Added to the mean square. Default: 1e-6.
        groups: Number of equal groups that the single `axis` is cut into. Each has a statistic of its own; the gain
            keeps one entry per entry of the axis. Default: 1.
        fused: True compiles with XLA, once for every new shape. False never compiles, which TFLiteConverter and tf2onnx
            need for a static shape. None (default) compiles large inputs of a static shape and, in eager mode, shapes
            that recur. `set_fused` overrides it.
        **unknown: Always an error. For another library's name of an argument, such as `eps`, the error gives ours.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: `x`, `scale` or `offset` is not floating point, or an argument is unknown.
        ValueError: An argument is out of its range, or does not fit the shape of `x`.

    Reference:
        Zhang & Sennrich 2019, arXiv 1910.07467, equation 4 and section 3.2 (partial).
    """
    options = _checked("rms_norm", unknown, axis, scale_axis, partial, epsilon, groups, fused)
    if isinstance(x, tf.RaggedTensor):
        if gate is not None:
            raise TypeError("rms_norm takes no gate for a ragged tensor. Multiply its result by the gate.")
        rows = functools.partial(rms_norm, scale=scale, offset=offset, **{**options, "axis": -1, "scale_axis": None})
        return _over_last_dimension(rows, x, options["axis"], options["scale_axis"])
    return normalize(x, scale, offset, gate, **options)


@tf.autograph.experimental.do_not_convert
def add_rms_norm(
    x: tf.Tensor,
    residual: tf.Tensor,
    scale: tf.Tensor | None = None,
    offset: tf.Tensor | None = None,
    *,
    axis: int | Sequence[int] = -1,
    scale_axis: int | Sequence[int] | None = None,
    partial: float | None = None,
    epsilon: float = 1e-6,
    groups: int = 1,
    fused: bool | None = None,
    **unknown: Any,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds a residual, and normalizes the sum.

    The same as `total = x + residual` and `rms_norm(total, ...)`, in one function forward and one backward. The
    gradient keeps the sum and one number per row.

    >>> y, total = add_rms_norm(tf.constant([[1.0, 3.0]]), tf.constant([[2.0, 1.0]]), epsilon=1e-12)
    >>> total.numpy(), y.numpy().round(4)
    (array([[3., 4.]], dtype=float32), array([[0.8485, 1.1314]], dtype=float32))

    Args:
        x: As in `rms_norm`, but not ragged.
        residual: Added to `x`; of the same shape and dtype.
        scale: As in `rms_norm`, like all further arguments.
        offset: See `rms_norm`.
        axis: See `rms_norm`.
        scale_axis: See `rms_norm`.
        partial: See `rms_norm`.
        epsilon: See `rms_norm`.
        groups: See `rms_norm`.
        fused: See `rms_norm`.
        **unknown: Always an error; see `rms_norm`.

    Returns:
        The normalized sum, and the sum. Both have the shape and dtype of `x`.

    Raises:
        TypeError: An input is not floating point or is ragged, `residual` has another dtype than `x`, or an argument is
            unknown.
        ValueError: An argument is out of its range, or does not fit the shape of `x`.

    Reference:
        Zhang & Sennrich 2019, arXiv 1910.07467, equation 4.
    """
    options = _checked("add_rms_norm", unknown, axis, scale_axis, partial, epsilon, groups, fused)
    return add_and_normalize(x, residual, scale, offset, **options)


def normalize(x, scale, offset, gate=None, **options):
    """Computes `rms_norm` of a tensor with arguments that are checked already."""
    x = _of_known_rank(x)
    if gate is None:
        [y] = _compute(NORM, [x], scale, offset, **options)
    else:
        [y] = _compute(GATED_NORM, _alike(x, "gate", gate), scale, offset, **options)
    return y


def add_and_normalize(x, residual, scale, offset, **options):
    """Computes `add_rms_norm` with arguments that are checked already."""
    for name, value in (("x", x), ("residual", residual)):
        if isinstance(value, tf.RaggedTensor):
            raise TypeError(f"add_rms_norm takes no ragged tensor, but {name} is one. Use x + residual and rms_norm.")
    y, total = _compute(NORM_OF_SUM, _alike(_of_known_rank(x), "residual", residual), scale, offset, **options)
    return y, total


def _checked(where, unknown, axis, scale_axis, partial, epsilon, groups, fused):
    """Returns the options of a function, or raises an error that names the wrong one."""
    if unknown:
        own = ("scale", "offset", "axis", "scale_axis", "epsilon", "groups")
        refuse_habits(where, unknown, (*own, "gate") if where == "rms_norm" else own)
        raise TypeError(f"{where}() got an unexpected keyword argument {next(iter(unknown))!r}")
    axis = check_axis("axis", axis)
    return {
        "axis": axis,
        "scale_axis": None if scale_axis is None else check_axis("scale_axis", scale_axis),
        "partial": check_partial(partial, axis),
        "epsilon": check_epsilon(epsilon),
        "groups": check_groups(groups, axis),
        "fused": check_flag("fused", fused, (True, False, None)),
    }


def _compute(computation: Computation, tensors, scale, offset, *, axis, scale_axis, partial, epsilon, groups, fused):
    """Returns the results of a computation for tensors of one shape and dtype."""
    equation = Equation.for_shape(tuple(tensors[0].shape), axis, scale_axis, partial, epsilon, groups)
    weights = _weights(equation, tensors[0], scale, offset)

    def compute(tensors, weights, equation=equation):
        inputs = [*tensors, *weights]
        return implementation(computation, equation, inputs, fused)(*inputs)

    if groups == 1:
        return compute(tensors, weights)
    return in_groups(equation, tensors, weights, functools.partial(compute, equation=equation_of_a_group(equation)))


def _of_known_rank(x):
    x = tf.convert_to_tensor(x)
    check_dtype("x", x.dtype)
    if x.shape.rank is None:
        raise ValueError("x must have a known rank, got a tensor of unknown rank. Use tf.ensure_shape.")
    return x


def _alike(x, name, other):
    """Returns x and the other tensor, which must have its dtype and its shape."""
    other = tf.convert_to_tensor(other, dtype_hint=x.dtype)
    if other.dtype != x.dtype:
        raise TypeError(f"{name} must have the dtype of x, {x.dtype.name}, got {other.dtype.name}. Cast one of them.")
    check_shape(name, x.shape, other.shape)
    if not (x.shape.is_fully_defined() and other.shape.is_fully_defined()):
        other = tf.reshape(other, tf.shape(x))  # fails for other sizes, where arithmetic would broadcast
    return [x, other]


def check_shape(name: str, of_x: tf.TensorShape, shape: tf.TensorShape) -> None:
    """Raises a ValueError unless `shape`, of the tensor that is called `name`, may be the shape of x."""
    if not of_x.is_compatible_with(shape):
        raise ValueError(
            f"{name} must have the shape of x, {of_x}, got {shape}. It is not broadcast; use tf.broadcast_to."
        )


def check_dtype(name: str, dtype: tf.DType | str) -> None:
    """Raises a TypeError unless `dtype` is floating point."""
    dtype = tf.as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(
            f"{name} must be float16, bfloat16, float32 or float64, got {dtype.name}. "
            f"Cast it first, for example with tf.cast({name}, tf.float32)."
        )


def _weights(equation, x, scale, offset):
    """Returns nothing, scale, or scale and offset, in the wide dtype."""
    wide = _gradient.wide_dtype(x.dtype)
    shape = equation.scale_shape(tuple(x.shape))
    weights = []
    for name, weight in (("scale", scale), ("offset", offset)):
        if weight is None:
            continue
        if isinstance(weight, bool):
            raise TypeError(f"{name} must be a tensor or None, got {weight}. Pass None for no {name}.")
        weight = tf.convert_to_tensor(weight, dtype_hint=wide)
        check_dtype(name, weight.dtype)
        if weight.shape.rank is None or tuple(weight.shape) != shape:
            if not weight.shape.is_compatible_with(shape):
                raise ValueError(
                    f"{name} has shape {weight.shape}, but x of shape {x.shape} needs {tf.TensorShape(shape)}: its "
                    f"sizes at {equation.scale_axes}. Reshape {name}, or choose another scale_axis. A layer accepts "
                    "only the sizes that it was built with."
                )
            weight = tf.ensure_shape(weight, shape)
        weights.append(weight if weight.dtype == wide else tf.cast(weight, wide))
    if scale is None and offset is not None:
        weights.insert(0, tf.ones_like(weights[0]))
    return weights


def _over_last_dimension(function: Callable, x: tf.RaggedTensor, axis, scale_axis):
    """Applies `function` to the rows of a ragged tensor."""
    last = x.shape.rank - 1
    for name, value in (("axis", axis), ("scale_axis", scale_axis)):
        if value not in (None, -1, last, (-1,), (last,)):
            raise ValueError(
                f"{name} must be the last axis for a ragged tensor, got {name}={value}: the other axes differ in "
                "length from row to row. Use axis=-1, or x.to_tensor() and a mask."
            )
    size = x.shape[-1]
    if size is None:
        raise ValueError(
            f"x is ragged in its last dimension, which rms_norm would normalize: its shape is {x.shape}. "
            "Use a ragged tensor whose last dimension is uniform."
        )

    def rows(values):
        return tf.reshape(function(tf.reshape(values, [-1, size])), tf.shape(values))

    return tf.ragged.map_flat_values(rows, x)
