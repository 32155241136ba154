"""Affine maps `x W + b` of rows. Most of the time goes into these products, so their precision is chosen here."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import keras
import tensorflow as tf

Weight = tf.Tensor | keras.Variable


class Products:
    """Computes `x W + b` with factors rounded to one dtype; sums, biases and results stay float32.

    Args:
        dtype: `float32` or `bfloat16`.
    """

    def __init__(self, dtype: str = "float32"):
        self.dtype = dtype

    def __call__(self, x: tf.Tensor, matrix: Weight, bias: Weight | None) -> tf.Tensor:
        z = multiply(tf.cast(x, self.dtype), tf.cast(tf.convert_to_tensor(matrix), self.dtype))
        return z if bias is None else _add_bias(z, tf.convert_to_tensor(bias))


_products: ContextVar[Callable] = ContextVar("products")
_float32 = Products()


def affine(x: tf.Tensor, matrix: Weight, bias: Weight | None = None) -> tf.Tensor:
    """Returns `x W + b` in float32, `[rows, units]`.

    Args:
        x: `[rows, inputs]`.
        matrix: `[inputs, units]`, or one matrix for each row, `[rows, inputs, units]`.
        bias: `[units]`, or `None` for none.
    """
    return _products.get(_float32)(x, matrix, bias)


@contextlib.contextmanager
def computing_with(products: Callable[[tf.Tensor, Weight, Weight | None], tf.Tensor]) -> Iterator[None]:
    """Within this context, `affine` calls `products`."""
    token = _products.set(products)
    try:
        yield
    finally:
        _products.reset(token)


def product_dtype() -> str:
    """Returns the dtype to which `affine` rounds its factors."""
    return _products.get(_float32).dtype


def over_rows(function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Applies a function of `[rows, inputs]` to all rows of `[..., inputs]` at once."""
    y = function(tf.reshape(x, [-1, x.shape[-1]]))
    return tf.reshape(y, [*leading_sizes(x), y.shape[-1]])


def leading_sizes(x: tf.Tensor) -> list[tf.Tensor | int]:
    """Returns the sizes of all axes but the last, for a reshape: a single unknown one is -1."""
    known = list(x.shape[:-1])
    if known.count(None) == 1:
        return [-1 if size is None else size for size in known]
    return [tf.shape(x)[axis] if size is None else size for axis, size in enumerate(known)]


def multiply(x: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Returns `x W` in float32 for `[rows, inputs]` and one matrix, or one matrix for each row."""
    product = tf.matmul(x, matrix) if len(matrix.shape) == 2 else tf.squeeze(tf.matmul(x[:, tf.newaxis], matrix), 1)
    return tf.cast(product, tf.float32)


def batch_product(x: tf.Tensor, y: tf.Tensor, *, transpose: bool = False) -> tf.Tensor:
    """Returns the products of the last two axes, `[..., rows, units]` in float32, in the precision of `affine`.

    Args:
        x: `[..., rows, inputs]`.
        y: `[..., inputs, units]`, or `[..., units, inputs]` if `transpose`.
        transpose: Exchanges the last two axes of `y`.
    """
    dtype = product_dtype()
    return tf.cast(tf.matmul(tf.cast(x, dtype), tf.cast(y, dtype), transpose_b=transpose), tf.float32)


@tf.custom_gradient
def _add_bias(z: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    return z + bias, lambda dz: (dz, tf.reduce_sum(dz, 0))
