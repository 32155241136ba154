"""Computes the affine maps `x W + b` of a model in a given precision, and draws dropout masks.

Most of the time goes into the products, so their factors may be rounded.
"""

from collections.abc import Callable

import keras
import tensorflow as tf

Weight = tf.Tensor | keras.Variable
Affine = Callable[..., tf.Tensor]  # `affine`, or a function of `x`, matrix and bias in its place

# The same numbers with and without XLA, whose default generator is slow.
_PHILOX = tf.random.Algorithm.PHILOX.value
_LEVELS = 2**16  # an entry is dropped or kept by 16 random bits


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


class ForwardPass:
    """A pass through a model, with its dropout masks and the precision of its matrix products.

    Mask i is a pure function of the seed and i, so the same seed gives the same update: the seed is
    the key of the generator Philox, and i the upper half of its counter. A recurrent model reuses
    the mask of a sequence at every time step, as in Nematus.

    Args:
        seed: Tensor `[2]` of 32-bit integers, or `None` for no dropout.
        dtype: `float32` or `bfloat16`, to which products round their factors.
    """

    def __init__(self, seed: tf.Tensor | None = None, dtype: str = "float32"):
        self._seed = seed
        self.dtype = dtype
        self._drawn = 0

    def affine(self, x: tf.Tensor, matrix: Weight, bias: Weight | None = None) -> tf.Tensor:
        """Returns `x W + b` in float32, of factors in the dtype of this pass."""
        return affine(x, matrix, bias, self.dtype)

    def draw(self, rate: float, shape) -> tf.Tensor | None:
        """Returns a mask of `shape` with entries 0 and 1 / (1 - rate), or `None` where nothing is
        dropped.

        The rate is rounded to a multiple of 1 / 65,536.
        """
        if self._seed is None or rate == 0.0:
            return None
        self._drawn += 1
        dropped = min(round(rate * _LEVELS), _LEVELS - 1)
        kept = _random_levels(tf.convert_to_tensor(shape), self._seed, self._drawn) >= dropped
        return tf.cast(kept, tf.float32) * (_LEVELS / (_LEVELS - dropped))


def _random_levels(shape: tf.Tensor, seed: tf.Tensor, number: int) -> tf.Tensor:
    """Returns uniform 16-bit integers.

    Four come from one 64-bit number, which takes a quarter of the time.
    """
    count = tf.reduce_prod(shape)
    key = tf.bitcast(seed, tf.uint64)[tf.newaxis]
    counter = tf.constant([0, number], tf.uint64)
    # tf.random would scramble the key for each mask, with many more operations to trace and
    # compile.
    numbers = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[-(-count // 4)], key=key, counter=counter, alg=_PHILOX, dtype=tf.uint64
    )
    return tf.reshape(tf.reshape(tf.bitcast(numbers, tf.uint16), [-1])[:count], shape)


def drop(x: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Multiplies by a mask, or one for all steps: `[batch, units]` for `[batch, time, units]`."""
    if mask is None:
        return x
    if len(x.shape) == 3 and len(mask.shape) == 2:
        mask = mask[:, tf.newaxis]  # [batch, 1, units]
    return x * mask
