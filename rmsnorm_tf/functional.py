"""The equation of RMS normalization and its gradient, composed of plain operations."""

import math
from fractions import Fraction

import tensorflow as tf


def prefix_size(size: int, partial: float) -> int:
    """Returns k = ceil(size * partial), the number of entries a partial statistic looks at; at least 1.

    `partial` is read as the nearest fraction with a denominator of at most a million, so that
    rounding in a binary float never adds an entry: 10% of 30 is 3, though `30 * 0.1 > 3`.
    """
    return max(1, math.ceil(size * Fraction(float(partial)).limit_denominator(10**6)))


def normalize(
    x: tf.Tensor,
    scale: tf.Tensor | None,
    offset: tf.Tensor | None,
    axes: tuple[int, ...],
    prefix: int | None,
    epsilon: float,
) -> tf.Tensor:
    """Computes `x / sqrt(mean(x**2) + epsilon) * scale + offset`.

    `scale` and `offset` broadcast against `x`; `axes` are sorted and not negative.
    """
    dtype = tf.float64 if tf.float64 in (x.dtype, scale is not None and scale.dtype) else tf.float32
    wide = tf.cast(x, dtype)
    head = wide
    if prefix is not None:
        head = tf.gather(wide, tf.range(prefix), axis=axes[0])
    y = wide * tf.math.rsqrt(tf.reduce_mean(tf.square(head), axes, keepdims=True) + epsilon)
    if scale is not None:
        y *= tf.cast(scale, dtype)
    if offset is not None:
        y += tf.cast(offset, dtype)
    return tf.cast(y, x.dtype)
