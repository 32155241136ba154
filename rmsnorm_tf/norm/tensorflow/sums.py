"""Sums over axes of any length, exact to a few roundings, and fast on a CPU.

Adding one float32 after the other loses a digit with every hundredfold length. TensorFlow adds the
entries of a row in a tree, but those of a column one after the other, so a column is cut into
blocks. So is everything inside XLA, which adds one after the other, and vectorizes matrix products
and additions of slices alone: there a row is multiplied by ones. The sums of blocks are added in
float64, or, as TFLite and ONNX lack that, in blocks again. Accelerators sum in a tree by
themselves, and may round the factors of a matrix product.
"""

import functools
import math
import os
from collections.abc import Sequence

import tensorflow as tf

# Entries of a block of a row inside XLA: if a row has a power of two of such blocks, or not; of a
# row that is too long for one product.
_BLOCK = 512
_SHORT_BLOCK = 64
_LONG_ROW = 4096

# Into how many parts a column is cut, which are added like vectors: outside XLA and inside; the
# shortest column that is cut; the longest whose sums of blocks XLA adds in float32.
_PARTS = 64
_SLICES = 8
_FEW_ROWS = 128
_MOST_ROWS_IN_XLA = 4096

_given = os.environ.get("RMSNORM_TF_SUMS", "")
if _given not in ("products", "plain", ""):
    raise ValueError(
        "The environment variable RMSNORM_TF_SUMS must be products, plain or empty, "
        f"got {_given!r}."
    )


@functools.cache
def _for_cpus():
    """Returns whether to write sums for a CPU: in blocks, and inside XLA as matrix products."""
    return _given == "products" or (
        not _given
        and all(device.device_type == "CPU" for device in tf.config.list_logical_devices())
    )


def sum_over(
    t: tf.Tensor, axes: Sequence[int], in_xla: bool = False, in_float64: bool = False
) -> tf.Tensor:
    """Returns the sum over ascending axes, counted from the front, which keep size 1.

    `in_xla` says whether XLA compiles the sum, `in_float64` whether the sums of blocks may be
    summed in float64 elsewhere too.
    """
    if not _for_cpus():
        return tf.reduce_sum(t, axes, keepdims=True)
    firsts = [a for a in axes if a - 1 not in axes]
    ends = [a + 1 for a in axes if a + 1 not in axes]
    for first, end in reversed(list(zip(firsts, ends, strict=True))):
        t = _sum_run(t, first, end, in_xla, in_float64)
    return t


def product_of_rows(t: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns the sum of `t * weight` over the last axis, which keeps size 1, inside XLA."""
    *sizes, size = sizes_of(t)
    is_long = not isinstance(size, int) or size >= _LONG_ROW
    if is_long or t.shape.num_elements() == size or not _for_cpus():
        return sum_over(t * weight, [t.shape.rank - 1], in_xla=True)
    return tf.reshape(tf.matmul(tf.reshape(t, [-1, size]), weight[:, tf.newaxis]), [*sizes, 1])


def sizes_of(t: tf.Tensor) -> list[int | tf.Tensor]:
    """Returns the sizes of t, as scalar tensors where they are unknown."""
    if t.shape.is_fully_defined():
        return list(t.shape)
    sizes = tf.shape(t)
    return [sizes[a] if size is None else size for a, size in enumerate(t.shape)]


def _sum_run(t, first, end, in_xla, in_float64):
    """Sums over the axes from `first` to `end`, which follow each other."""
    sizes = sizes_of(t)
    before = math.prod(sizes[:first])
    size = math.prod(sizes[first:end])
    after = math.prod(sizes[end:])
    is_row = isinstance(after, int) and after == 1
    in_xla = in_xla and isinstance(size, int)
    if (is_row and not in_xla) or (not is_row and isinstance(size, int) and size < _FEW_ROWS):
        return tf.reduce_sum(t, range(first, end), keepdims=True)
    if is_row:
        t = _sum_rows_in_xla(tf.reshape(t, [before, size]), before, size)
    elif in_xla:
        t = _sum_columns_in_xla(tf.reshape(t, [before, size, after]), size)
    else:
        t = _sum_columns(tf.reshape(t, [before, size, after]), before, size, after, in_float64)
    return tf.reshape(t, [*sizes[:first], *[1] * (end - first), *sizes[end:]])


def _sum_rows_in_xla(t, rows, size):
    """Sums `[rows, size]` over its last axis, by products.

    XLA vectorizes these, and no sums along the last axis. It computes the product of a single row
    entry by entry, and vectorizes products of blocks only if a row has a power of two of them.
    """
    if size < _LONG_ROW and not (isinstance(rows, int) and rows == 1):
        return _times_ones(t)
    block = _BLOCK if (size // _BLOCK).bit_count() == 1 else _SHORT_BLOCK
    blocks = size // block
    if blocks == 0:
        return _in_float64(t)
    total = _times_ones(tf.reshape(t[:, : blocks * block], [rows * blocks, block]))
    total, _ = _with_rest(tf.reshape(total, [rows, blocks]), blocks, t, size % block)
    return _in_float64(total)


def _with_rest(total, count, t, rest):
    """Appends the last entries of t along axis 1 to sums, and returns how many there are then."""
    if isinstance(rest, int) and rest == 0:
        return total, count
    return tf.concat([total, t[:, sizes_of(t)[1] - rest :]], 1), count + rest


def _times_ones(t):
    return tf.matmul(t, tf.ones([t.shape[1], 1], t.dtype))


def _sum_columns_in_xla(t, size):
    """Sums over the second axis; XLA vectorizes additions of slices, and computes t as it adds."""
    length = size // _SLICES
    rest = size % _SLICES
    total, _ = _with_rest(tf.add_n(tf.split(t[:, : size - rest], _SLICES, 1)), length, t, rest)
    return _in_float64(total) if length > _MOST_ROWS_IN_XLA else _sum_few_rows(total)


def _sum_columns(t, before, size, after, in_float64):
    """Sums `[before, size, after]` over its second axis, adding vectors of consecutive rows."""
    for _ in range(1 if in_float64 else 3):
        if not isinstance(size, int) or size >= 4 * _PARTS:
            length = size // _PARTS
            parts = tf.reshape(t[:, : _PARTS * length], [before, _PARTS, length * after])
            total = tf.reshape(_sum_few_rows(parts), [before, length, after])
            t, size = _with_rest(total, length, t, size % _PARTS)
    return _in_float64(t) if in_float64 else _sum_few_rows(t)


def _in_float64(t):
    return tf.cast(tf.reduce_sum(tf.cast(t, tf.float64), 1, keepdims=True), t.dtype)


def _sum_few_rows(t):
    if t.shape[0] == 1:  # outside XLA, several times faster than reduce_sum
        return tf.raw_ops.BiasAddGrad(out_backprop=t[0])[tf.newaxis, tf.newaxis]
    return tf.reduce_sum(t, 1, keepdims=True)
