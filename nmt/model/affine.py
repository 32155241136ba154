"""Affine maps `x W + b` of rows. Most of the time goes into these products, so their factors may be rounded."""

from collections.abc import Callable

import keras
import tensorflow as tf

Weight = tf.Tensor | keras.Variable
Affine = Callable[..., tf.Tensor]  # `affine`, or a function of `x`, matrix and bias in its place


def affine(x: tf.Tensor, matrix: Weight, bias: Weight | None = None, dtype: str = "float32") -> tf.Tensor:
    """Returns `x W + b` in float32, `[rows, units]`.

    Args:
        x: `[rows, inputs]`.
        matrix: `[inputs, units]`, or one matrix for each row, `[rows, inputs, units]`.
        bias: `[units]`, or `None` for none.
        dtype: `float32`, `bfloat16` or `float16`, to which `x` and the matrix are rounded.
    """
    matrix = tf.convert_to_tensor(matrix)
    if len(matrix.shape) == 2:
        z = rounded_product(x, matrix, dtype)
    else:
        z = tf.squeeze(rounded_product(x[:, tf.newaxis], matrix, dtype), 1)
    return z if bias is None else tf.nn.bias_add(z, tf.convert_to_tensor(bias))


def over_rows(function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Applies a function of `[rows, inputs]` to all rows of `[..., inputs]` at once."""
    y, sizes = function(tf.reshape(x, [-1, x.shape[-1]])), list(x.shape[:-1])
    if sizes.count(None) == 1:
        sizes = [-1 if size is None else size for size in sizes]
    else:
        sizes = [tf.shape(x)[axis] if size is None else size for axis, size in enumerate(sizes)]
    return tf.reshape(y, [*sizes, y.shape[-1]])


def rounded_product(x: tf.Tensor, y: tf.Tensor, dtype: str, *, transpose_a=False) -> tf.Tensor:
    """Returns the products of the last two axes in float32, their factors rounded to a dtype."""
    if dtype == "float16":
        return float16_product(tf.linalg.matrix_transpose(x) if transpose_a else x, y)
    z = tf.matmul(tf.cast(x, dtype), tf.cast(y, dtype), transpose_a=transpose_a)
    return tf.cast(z, tf.float32)


@tf.custom_gradient
def float16_product(x, y):
    """Returns `x y` in float32, of factors in float16. So are its gradients. It keeps the rounded factors.

    Float16 has a small range: gradients soon become 0 or infinite in it. So each factor is divided by a power of two
    that brings its largest entry between 1/2 and 1 before it is rounded, and the product is multiplied by both powers.
    This takes the place of a loss scale. Entries below 2**-25 of the largest entry become 0.

    Args:
        x: `[..., rows, inputs]`. The product may overflow if there are more than 65,504 inputs.
        y: `[..., inputs, units]`.
    """
    (x, x_power), (y, y_power) = _rounded(x), _rounded(y)

    def gradients(dz):
        dz, power = _rounded(dz)
        dx = _widened(tf.matmul(dz, y, transpose_b=True), power, y_power)
        return dx, _widened(tf.matmul(x, dz, transpose_a=True), x_power, power)

    return _widened(tf.matmul(x, y), x_power, y_power), gradients


def _rounded(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns x / p in float16, and p: the least power of two that no absolute entry exceeds, or 1 if all are 0."""
    largest = tf.reduce_max(tf.abs(x))
    power = tf.where(largest == 0, 1.0, 2.0 ** tf.math.ceil(tf.math.log(largest) / tf.math.log(2.0)))
    return tf.cast(x / power, tf.float16), power


def _widened(z: tf.Tensor, *powers: tf.Tensor) -> tf.Tensor:
    """Returns a product in float32, multiplied by the powers of its factors."""
    z = tf.cast(z, tf.float32)
    for power in powers:
        z *= power
    return z
