"""RMS normalization and its gradient, in plain TensorFlow operations.

With one number per row, u = 1 / sqrt(mean(x**2) + epsilon), and z = x u:

    y       = z * scale + offset
    dx      = u (g - z (mean(g z) + du u / n)),  where g = dy * scale
    dscale  = sum over rows of dy z
    doffset = sum over rows of dy

The backward pass needs only x, u and scale. For second derivatives, u is an output too and has a gradient du; n is the
number of entries in the mean. A partial statistic is the mean over the first k entries. Then n is k, mean(g z) is the
sum over all entries divided by k, and the term with z is subtracted in the first k entries only.

The CPU flushes subnormal numbers to zero, and near the end of the floating-point range u is subnormal. So the code
keeps `_HEADROOM` times u, and z likewise, and divides scale by `_HEADROOM`, which costs nothing.
"""

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from rmsnorm_tf.norm.arguments import Equation

_HEADROOM = 4.0

# A row whose squares overflow is multiplied by this first. Sums of squares then fit for any number of entries, and each
# of these sums is still far above the smallest normal number.
_SHRINK = {tf.float32: 2.0**-80, tf.float64: 2.0**-640}

Sum = Callable[[tf.Tensor, tuple[int, ...]], tf.Tensor]


def wide_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype that an input of `dtype` is normalized in. The sum of squares may use a wider one."""
    return tf.float64 if dtype == tf.float64 else tf.float32


def plain_square_sum(t: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
    """Sums the squares over the statistic's axes, which keep size 1."""
    return _row_sum(tf.square(t), axes)


def plain_column_sum(t: tf.Tensor, scale_axes: tuple[int, ...]) -> tf.Tensor:
    """Sums over all axes except those of the scale."""
    rank = t.shape.rank
    if rank > 1 and scale_axes == (rank - 1,):
        # Outside XLA, several times faster than reduce_sum.
        return tf.raw_ops.BiasAddGrad(out_backprop=t)
    return tf.reduce_sum(t, [a for a in range(rank) if a not in scale_axes])


@functools.cache
def sums_as_products() -> bool:
    """Whether to write sums along rows as matrix products, which a CPU computes faster.

    A GPU may round the factors of a float32 matrix product to ten bits (TensorFloat-32). The environment variable
    `RMSNORM_TF_SUMS`, `products` or `plain`, decides for a program that is made on one machine and runs on another.
    """
    given = os.environ.get("RMSNORM_TF_SUMS", "")
    if given not in ("products", "plain", ""):
        raise ValueError(f"The environment variable RMSNORM_TF_SUMS must be products, plain or empty, got {given!r}.")
    return given == "products" or (not given and not tf.config.list_logical_devices("GPU"))


def forward(equation: Equation, x: tf.Tensor, *weights: tf.Tensor, **options: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns y in the dtype of x, and u. The arguments are those of `wide_forward`."""
    y, u = wide_forward(equation, x, *weights, **options)
    return tf.cast(y, x.dtype), u


def wide_forward(
    equation: Equation,
    x: tf.Tensor,
    *weights: tf.Tensor,
    square_sum: Sum = plain_square_sum,
    branches: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns y in the wide dtype, and u.

    Args:
        equation: What to compute.
        x: `[...]`, floating point.
        *weights: Nothing, scale, or scale and offset, in the wide dtype.
        square_sum: How to sum the squares over the statistic's axes. A result in the wide dtype is checked for
            overflow; a result in a wider dtype must not overflow.
        branches: True sums again only if a sum overflowed, in a branch. False always sums again, without a branch.
    """
    wide = tf.cast(x, wide_dtype(x.dtype))
    u = _inverse_rms(equation, x, wide, square_sum, branches)
    return normalized(equation, wide, u, *weights), u


def normalized(equation: Equation, wide: tf.Tensor, u: tf.Tensor, *weights: tf.Tensor) -> tf.Tensor:
    """Returns y in the wide dtype, given x in that dtype and u."""
    y = wide * u * _folded_scale(equation, wide, weights)
    return y + _broadcast(equation, weights[1], wide.shape.rank) if len(weights) > 1 else y


def backward(
    equation: Equation,
    dy: tf.Tensor,
    du: tf.Tensor,
    x: tf.Tensor,
    u: tf.Tensor,
    *weights: tf.Tensor,
    column_sum: Sum = plain_column_sum,
) -> list[tf.Tensor]:
    """Returns the gradients of x and of the weights, given those of y and u."""
    wide, dy = tf.cast(x, u.dtype), tf.cast(dy, u.dtype)
    z = wide * u
    w = _folded_scale(equation, wide, weights)
    dy_z = dy * z
    c = (_row_dot(equation, dy_z, w) + du * u) / (_HEADROOM**2 * _count(equation, wide))
    dx = u * (dy * w - _pad(equation, _head(equation, z) * c, wide))
    gradients = [tf.cast(dx, x.dtype)]
    if weights:
        gradients.append(_sum_for_weight(equation, dy_z, column_sum) / _HEADROOM)
    if len(weights) > 1:
        gradients.append(_sum_for_weight(equation, dy, column_sum))
    return gradients


def _sum_for_weight(equation, t, column_sum):
    """Sums over all axes except those of the scale. If these come last, they are flattened, which is faster."""
    axes = equation.scale_axes
    sizes = t.shape[axes[0] :]
    if len(axes) == 1 or axes[0] == 0 or axes != tuple(range(axes[0], t.shape.rank)) or None in sizes:
        return column_sum(t, axes)
    flat = tf.reshape(t, [-1, math.prod(sizes)])
    return tf.reshape(column_sum(flat, (1,)), sizes)


def _inverse_rms(equation, x, wide, square_sum, branches):
    total = square_sum(_head(equation, wide), equation.axes)
    u = _inverse_root(equation, wide, total)
    if total.dtype != wide.dtype:
        return tf.cast(u, wide.dtype)
    # stop_gradient: nested accumulators fail at comparisons in a graph
    fits = tf.stop_gradient(total) <= total.dtype.max

    def again():
        # Cast x once more. If `wide` went into a branch, XLA would always write all of it to memory.
        head, shrink = tf.cast(_head(equation, x), wide.dtype), _SHRINK[wide.dtype]
        # Select entries instead of multiplying by a factor per row, which XLA would move out of the sum.
        shrunk = plain_square_sum(tf.where(fits, head, head * shrink), equation.axes)
        factor = tf.where(fits, tf.ones([], wide.dtype), shrink)
        return factor * _inverse_root(equation, wide, shrunk, factor)

    if not branches:
        return again()  # a choice between two u would have infinity times zero in its derivative
    return tf.cond(tf.reduce_all(fits), lambda: u, lambda: tf.where(fits, u, again()))


def _inverse_root(equation, wide, total, factor=1.0):
    """Returns u / factor, given the sum of squares of entries that were multiplied by `factor`."""
    fold = 1 / _HEADROOM**2
    return tf.math.rsqrt(total * (fold / _count(equation, wide)) + fold * equation.epsilon * factor * factor)


def _row_sum(t, axes):
    return tf.reduce_sum(t, axes, keepdims=True)


def _row_dot(equation, t, w):
    """Sums `t * w` over the statistic's axes, which keep size 1; w is the scale or a scalar."""
    if w.shape.rank == 0:
        return _row_sum(t, equation.axes) * w
    if equation.axes != (t.shape.rank - 1,) or t.shape[-1] is None or not sums_as_products():
        return _row_sum(t * w, equation.axes)
    if equation.scale_axes != equation.axes:
        t, w = t * w, tf.ones([t.shape[-1]], t.dtype)
    w = tf.expand_dims(w, 1)
    return tf.matmul(t, w) if t.shape.rank == 2 else tf.tensordot(t, w, 1)


def _head(equation, t):
    """Returns the entries that the statistic takes."""
    if equation.prefix is None:
        return t
    return t[(slice(None),) * equation.axes[0] + (slice(equation.prefix),)]


def _pad(equation, head, like):
    """Returns `head` followed by zeros, in the shape of `like`."""
    if equation.prefix is None:
        return head
    [axis] = equation.axes
    zeros, ones = [0] * (axis + 1), [1] * (axis + 1)
    # The gradient of `_head`, whose own gradient is `_head`. TensorFlow cannot differentiate tf.pad twice inside XLA.
    return tf.raw_ops.StridedSliceGrad(
        shape=tf.shape(like),
        begin=zeros,
        end=[*zeros[:-1], equation.prefix],
        strides=ones,
        dy=head,
        begin_mask=2 ** (axis + 1) - 1,
        end_mask=2**axis - 1,
    )


def _count(equation, t):
    """Returns the number of entries in the statistic."""
    if equation.prefix is not None:
        return equation.prefix
    sizes = [t.shape[a] for a in equation.axes]
    if None not in sizes:
        return math.prod(sizes)
    sizes = tf.gather(tf.shape(t, tf.int64), equation.axes)
    return tf.cast(tf.reduce_prod(sizes), t.dtype)


def _folded_scale(equation, wide, weights):
    if not weights:
        return tf.constant(1 / _HEADROOM, wide.dtype)
    return _broadcast(equation, weights[0] / _HEADROOM, wide.shape.rank)


def _broadcast(equation, weight, rank):
    """Gives `weight` the axes that it needs to broadcast against an input of `rank`."""
    if equation.scale_axes == tuple(range(equation.scale_axes[0], rank)):
        return weight
    known = weight.shape.is_fully_defined()
    sizes = iter(weight.shape if known else tf.unstack(tf.shape(weight)))
    return tf.reshape(weight, [next(sizes) if a in equation.scale_axes else 1 for a in range(rank)])
