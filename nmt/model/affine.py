"""Matrix products, `x W + b`: where nearly all of the time goes, and so where the precision is chosen."""

from collections.abc import Callable

import keras
import tensorflow as tf

Tensor = tf.Tensor | keras.Variable


class Affine:
    """Computes `x W + b`.

    Weights and results are float32 whatever the dtype of the factors: processors that have products in bfloat16 make
    them about twice as fast, and sum them up in float32.

    Args:
        dtype: What the factors of the product are rounded to, `float32` or `bfloat16`.
    """

    def __init__(self, dtype: str = "float32"):
        self.dtype = dtype

    def __call__(self, x: tf.Tensor, matrix: Tensor, bias: Tensor | None = None) -> tf.Tensor:
        """Returns `x W + b` in float32.

        Args:
            x: `[rows, inputs]`.
            matrix: `[inputs, units]`, or one for each row, `[rows, inputs, units]`.
            bias: `[units]`, or `None` for none.
        """
        matrix = tf.convert_to_tensor(matrix)
        z = multiply(tf.cast(x, self.dtype), tf.cast(matrix, self.dtype))
        return z if bias is None else _add_bias(z, tf.convert_to_tensor(bias))


affine = Affine()


def over_rows(function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Applies a function of `[rows, inputs]` to all of `[..., inputs]` at once."""
    y = function(tf.reshape(x, [-1, x.shape[-1]]))
    sizes = [tf.shape(x)[axis] if size is None else size for axis, size in enumerate(x.shape[:-1])]
    return tf.reshape(y, [*sizes, y.shape[-1]])


def multiply(x: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Returns `x W` in float32, of `[rows, inputs]` and one matrix or one for each row."""
    product = tf.matmul(x, matrix) if len(matrix.shape) == 2 else tf.squeeze(tf.matmul(x[:, tf.newaxis], matrix), 1)
    return tf.cast(product, tf.float32)


@tf.custom_gradient
def _add_bias(z: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    return z + bias, lambda dz: (dz, tf.reduce_sum(dz, 0))
