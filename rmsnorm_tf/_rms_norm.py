"""`rms_norm`, the function: checks its arguments and the shapes, then calls plain or compiled operations."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from rmsnorm_tf import _gradient
from rmsnorm_tf._compiled import implementation
from rmsnorm_tf._computation import NORM
from rmsnorm_tf._equation import Equation, check_axis, check_epsilon, check_flag, check_partial, refuse_habits


def rms_norm(
    x: tf.Tensor | tf.RaggedTensor,
    scale: tf.Tensor | None = None,
    offset: tf.Tensor | None = None,
    *,
    axis: int | Sequence[int] = -1,
    scale_axis: int | Sequence[int] | None = None,
    partial: float | None = None,
    epsilon: float = 1e-6,
    fused: bool | None = None,
    **unknown: Any,
) -> tf.Tensor | tf.RaggedTensor:
    """Divides `x` by its root mean square over `axis`.

    The equation is `y = x / sqrt(mean(x**2, axis) + epsilon) * scale + offset`, with epsilon inside the root. The mean,
    the root and the products are computed in at least float32, in float64 for a float64 `x`, and `y` is rounded to the
    dtype of `x` at the end. A row whose squares overflow that dtype is normalized like any other. The gradient keeps
    `x` and one number per row, and can itself be differentiated. There is no mask: each row is normalized by itself, so
    padded rows do not affect the others.

    >>> rms_norm(tf.constant([[3.0, 4.0]]), epsilon=1e-12).numpy().round(4)
    array([[0.8485, 1.1314]], dtype=float32)

    Args:
        x: float16, bfloat16, float32 or float64, of known rank; or a ragged tensor whose last dimension is uniform,
            which is normalized over that dimension.
        scale: The gain, with one dimension for each of `scale_axis`, in the order of x's dimensions. Default: None, no
            gain.
        offset: Added at the end, shaped like `scale`. Default: None, no offset.
        axis: Axis or axes of the mean, in any order; negative ones count from the end. Default: -1.
        scale_axis: Axis or axes of `scale` and `offset`. Default: None, the same as `axis`.
        partial: p in (0, 1]; the mean takes only the first `ceil(size * p)` entries of the single `axis`. Default:
            None, all entries.
        epsilon: Added to the mean square. Default: 1e-6.
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
    if unknown:
        refuse_habits("rms_norm", unknown, ("scale", "offset", "axis", "scale_axis", "epsilon"))
        raise TypeError(f"rms_norm() got an unexpected keyword argument {next(iter(unknown))!r}")
    axis = check_axis("axis", axis)
    scale_axis = None if scale_axis is None else check_axis("scale_axis", scale_axis)
    partial = check_partial(partial, axis)
    epsilon = check_epsilon(epsilon)
    check_flag("fused", fused, (True, False, None))
    if isinstance(x, tf.RaggedTensor):
        rows = functools.partial(rms_norm, scale=scale, offset=offset, partial=partial, epsilon=epsilon, fused=fused)
        return _over_last_dimension(rows, x, axis, scale_axis)
    return normalize(x, scale, offset, axis, scale_axis, partial, epsilon, fused)


def normalize(x, scale, offset, axis, scale_axis, partial, epsilon, fused):
    """Computes `rms_norm` of a tensor with arguments that are checked already."""
    x = tf.convert_to_tensor(x)
    check_dtype("x", x.dtype)
    if x.shape.rank is None:
        raise ValueError("x must have a known rank, got a tensor of unknown rank. Use tf.ensure_shape.")
    equation = Equation.for_shape(tuple(x.shape), axis, scale_axis, partial, epsilon)
    weights = _weights(equation, x, scale, offset)
    return implementation(NORM, equation, [x, *weights], fused)(x, *weights)[0]


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
