"""Defines layers that the architectures share: embedding, projection, PReLU."""

import keras
import tensorflow as tf

from ..normalization import Normalization, build_normalization
from .forward_pass import Affine, affine, over_rows


def normal_or_orthogonal(rows: int, columns: int) -> keras.initializers.Initializer:
    """Returns Nematus's initializer of a matrix: orthogonal if it is square, else 0.01 N(0, 1)."""
    if rows == columns:
        return keras.initializers.Orthogonal()
    return keras.initializers.RandomNormal(stddev=0.01)


class Block(keras.layers.Layer):
    """A layer whose weights exist from the start, since their sizes are known."""

    def __init__(self, name: str):
        super().__init__(name=name)
        self.built = True

    def _matrix(self, name: str, rows: int, columns: int, initializer=None) -> keras.Variable:
        initializer = initializer or normal_or_orthogonal(rows, columns)
        return self.add_weight(shape=(rows, columns), initializer=initializer, name=name)

    def _vector(self, name: str, units: int, initializer="zeros") -> keras.Variable:
        return self.add_weight(shape=(units,), initializer=initializer, name=name)


def without_last_gradients(x: tf.Tensor, count: int) -> tf.Tensor:
    """Returns a tensor `[words, ...]` whose last `count` entries are not trained."""

    @tf.custom_gradient
    def identity(x: tf.Tensor):
        def gradient(dx):
            return tf.concat([dx[:-count], tf.zeros([count, *x.shape[1:]])], 0)

        return tf.identity(x), gradient

    return identity(x)


class Embedding(Block):
    """Word vectors `[words, units]`; a negative id gives zeros.

    With padding, the last `padding` vectors are zeros at first and not trained.
    """

    def __init__(
        self,
        words: int,
        units: int,
        name: str,
        initializer: keras.initializers.Initializer | None = None,
        *,
        padding: int = 0,
    ):
        super().__init__(name=name)
        self.table = self._matrix("embeddings", words, units, initializer)
        self._padding = padding
        if padding:
            is_word = tf.sequence_mask(words - padding, words, self.table.dtype)
            self.table.assign(self.table * is_word[:, tf.newaxis])

    @property
    def rows(self) -> tf.Tensor:
        """The vectors, to be trained."""
        table = self.table.value
        return without_last_gradients(table, self._padding) if self._padding else table

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        known = tf.cast(ids >= 0, self.compute_dtype)
        return tf.gather(self.table.value, tf.maximum(ids, 0)) * known[..., tf.newaxis]


class Projection(Block):
    """`N(x W + b)`, with `N` the normalization."""

    def __init__(self, inputs: int, units: int, normalization: Normalization, name: str):
        super().__init__(name=name)
        self.kernel = self._matrix("kernel", inputs, units)
        self.bias = self._vector("bias", units)
        with keras.name_scope(name):
            self.normalization = build_normalization(normalization, units, "norm")

    def call(self, x: tf.Tensor, *, product: Affine = affine) -> tf.Tensor:
        return over_rows(lambda rows: self.normalization(product(rows, self.kernel, self.bias)), x)


class PReLU(Block):
    """`max(x, 0) + slope * min(x, 0)`, with one slope per unit that starts at 1, as in Nematus.

    Unlike Keras's own, it takes inputs of any rank.

    Reference: He et al. (2015), arXiv:1502.01852.
    """

    def __init__(self, units: int, name: str):
        super().__init__(name=name)
        self.slope = self._vector("slope", units, "ones")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.maximum(x, 0.0) + self.slope * tf.minimum(x, 0.0)
