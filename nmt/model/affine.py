"""Affine maps `x W + b` of rows.

Most of the time goes into these products, so their factors may be rounded.
"""

from collections.abc import Callable

import keras
import tensorflow as tf

Weight = tf.Tensor | keras.Variable
Affine = Callable[..., tf.Tensor]  # `affine`, or a function of `x`, matrix and bias in its place


def affine(
    x: tf.Tensor, matrix: Weight, bias: Weight | None = None, dtype: str = "float32"
) -> tf.Tensor:
    """Returns `x W + b` in float32, `[rows, units]`.

    Args:
        x: `[rows, inputs]`.
        matrix: `[inputs, units]`, or one matrix for each row, `[rows, inputs, units]`.
        bias: `[units]`, or `None` for none.
        dtype: `float32` or `bfloat16`, to which `x` and the matrix are rounded.
    """
    matrix = tf.convert_to_tensor(matrix)
    if len(matrix.shape) == 2:
        z = rounded_product(x, matrix, dtype)
    else:
        z = tf.squeeze(rounded_product(x[:, tf.newaxis], matrix, dtype), 1)
    return z if bias is None else tf.nn.bias_add(z, tf.convert_to_tensor(bias))


def over_rows(function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Applies a function of `[rows, inputs]` to all rows of `[..., inputs]` at once."""
    y = function(tf.reshape(x, [-1, x.shape[-1]]))
    sizes = list(x.shape[:-1])
    if sizes.count(None) == 1:
        sizes = [-1 if size is None else size for size in sizes]
    else:
        sizes = [tf.shape(x)[axis] if size is None else size for axis, size in enumerate(sizes)]
    return tf.reshape(y, [*sizes, y.shape[-1]])


def rounded_product(x: tf.Tensor, y: tf.Tensor, dtype: str, *, transpose_a=False) -> tf.Tensor:
    """Returns the products of the last two axes in float32, their factors rounded to a dtype."""
    z = tf.matmul(tf.cast(x, dtype), tf.cast(y, dtype), transpose_a=transpose_a)
    return tf.cast(z, tf.float32)
