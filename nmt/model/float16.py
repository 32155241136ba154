"""Matrix products with factors in float16.

Float16 has a small range: gradients soon become 0 or infinite in it. So each factor is divided by a power of two that
brings its largest entry between 1/2 and 1 before it is rounded. The product is multiplied by both powers. This takes
the place of a loss scale. Entries below 2**-25 of the largest entry become 0.
"""

import tensorflow as tf


@tf.custom_gradient
def product(x, y):
    """Returns `x y` in float32. Its gradients are float16 products too. It keeps the rounded factors.

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
