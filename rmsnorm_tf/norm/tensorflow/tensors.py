"""Backend helpers for TensorFlow.

`norm.portable` has the same functions for other backends, except `with_sizes_of`: all sizes are
known there.
"""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import keras
import tensorflow as tf

from rmsnorm_tf.norm.tensorflow.sums import sizes_of

F = TypeVar("F")
NOT_DENSE = (tf.RaggedTensor, tf.SparseTensor)

if os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True"):
    raise ImportError(
        "rmsnorm_tf needs Keras 3, but TF_USE_LEGACY_KERAS makes tf.keras Keras 2. "
        "Unset that variable."
    )


def without_autograph(function: F) -> F:
    """Excludes a function from AutoGraph, whose conversion takes seconds and changes nothing."""
    return tf.autograph.experimental.do_not_convert(function)


def as_tensor(value: Any, dtype: str | None = None) -> tf.Tensor:
    """Returns a value as a tensor, of this dtype if it has none of its own."""
    # What a variable holds: dispatch on the variable itself takes as long as reading it.
    return tf.convert_to_tensor(
        value.value if isinstance(value, keras.Variable) else value, dtype_hint=dtype
    )


def shape_of(t: tf.Tensor) -> tuple[int | None, ...] | None:
    """Returns the shape of a tensor, None if even its rank is unknown."""
    return None if t.shape.rank is None else tuple(t.shape)


def with_sizes_of(t: tf.Tensor, x: tf.Tensor, axes: Sequence[int], name: str) -> tf.Tensor:
    """Returns t, whose sizes are compared with those of x at some axes when it is computed.

    Args:
        t: A tensor of a graph. Some sizes of it, or of x, are unknown.
        x: The other tensor.
        axes: The axes of x, one for each of t.
        name: What an error calls t.
    """
    # XLA drops assertions, so sizes that differ become -2, to which nothing can be reshaped. In
    # arithmetic, which runs on the CPU beside an accelerator. With an axis more, because TensorFlow
    # drops a reshape of one unknown size.
    sizes = sizes_of(x)
    sizes = tf.stack([*(sizes[a] for a in axes), 1])
    own = tf.concat([tf.shape(t), [1]], 0)
    sizes -= tf.minimum(tf.abs(own - sizes), 1) * (sizes + 2)
    t = tf.squeeze(tf.reshape(t, sizes, name=f"sizes_of_{name}_must_be_those_of_x"), -1)
    t.set_shape([x.shape[a] for a in axes])
    return t


def split_last_axis(t: tf.Tensor, sizes: Sequence[int]) -> list[tf.Tensor]:
    """Splits a tensor into parts of these sizes along its last axis."""
    return tf.split(t, sizes, -1)
