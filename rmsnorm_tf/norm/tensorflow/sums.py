"""Sums over axes of any length that are exact to a few roundings, and fast on a CPU.

Adding one float32 after the other loses a digit with every hundredfold length. So a long sum is cut
into blocks, whose sums are summed in float64; TFLite and ONNX lack that, so a statistic that may be
exported is cut repeatedly instead. Accelerators sum in a tree by themselves, and may round the
factors of a matrix product.
"""

import functools
import math
import os
from collections.abc import Sequence

import tensorflow as tf

# Entries of a row in a block, which TensorFlow sums in a tree, or XLA by a product; in a product
# that may add one entry after the other; in a row that is too long for one tree, or for one product
# in XLA.
_BLOCK = 512
_SHORT_BLOCK = 64
_LONG_ROW = 4096

# Into how many parts a column is cut, which are added like vectors: by sums and by XLA.
_PARTS = 64
_SLICES = 8
_FEW_ROWS = 128
_MOST_ROWS_IN_XLA = 4096  # which XLA sums in blocks by itself

_given = os.environ.get("RMSNORM_TF_SUMS", "")
if _given not in ("products", "plain", ""):
    raise ValueError(
        f"The environment variable RMSNORM_TF_SUMS must be products, plain or empty, got {_given!r}."
    )


@functools.cache
def _for_cpus():
    """Whether to write sums for a CPU: in blocks, and inside XLA as matrix products."""
    return _given == "products" or (
        not _given
        and all(device.device_type == "CPU" for device in tf.config.list_logical_devices())
    )


def sum_over(
    t: tf.Tensor, axes: Sequence[int], in_xla: bool = False, in_float64: bool = False
) -> tf.Tensor:
    """Returns the sum over ascending axes, counted from the front, which keep size 1.

    `in_xla` says whether XLA compiles the sum, `in_float64` whether the sums of blocks may be
    summed in float64.
    """
    if not _for_cpus():
        return tf.reduce_sum(t, axes, keepdims=True)
    firsts = [a for a in axes if a - 1 not in axes]
    ends = [a + 1 for a in axes if a + 1 not in axes]
    for first, end in zip(
        reversed(firsts), reversed(ends), strict=True
    ):  # every run of axes that follow each other
        sizes = sizes_of(t)
        before, size, after = (
            math.prod(part) for part in (sizes[:first], sizes[first:end], sizes[end:])
        )
        is_row = isinstance(after, int) and after == 1
        is_known = isinstance(size, int)
        if is_known and size < (_LONG_ROW if is_row else _FEW_ROWS) and not (is_row and in_xla):
            t = tf.reduce_sum(t, range(first, end), keepdims=True)
            continue
        if is_row:
            t = tf.reshape(t, [before, size])
            t = (
                _sum_rows_in_xla(t, before, size)
                if in_xla and is_known
                else _sum_rows(t, before, size, in_float64)
            )
        else:
            t = _sum_columns(
                tf.reshape(t, [before, size, after]),
                before,
                size,
                after,
                in_xla and is_known,
                in_float64,
            )
        t = tf.reshape(t, [*sizes[:first], *[1] * (end - first), *sizes[end:]])
    return t


def product_of_rows(t: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns the sum of `t * weight` over the last axis, which keeps size 1, inside XLA."""
    *sizes, size = sizes_of(t)
    if (
        not _for_cpus()
        or not isinstance(size, int)
        or size >= _LONG_ROW
        or t.shape.num_elements() == size
    ):
        return sum_over(t * weight, [t.shape.rank - 1], in_xla=True, in_float64=True)
    return tf.reshape(tf.matmul(tf.reshape(t, [-1, size]), weight[:, tf.newaxis]), [*sizes, 1])


def sizes_of(t: tf.Tensor) -> list[int | tf.Tensor]:
    """Returns the sizes of t, as scalar tensors where they are unknown."""
    if t.shape.is_fully_defined():
        return list(t.shape)
    sizes = tf.shape(t)
    return [sizes[a] if size is None else size for a, size in enumerate(t.shape)]


def _sum_rows(t, rows, size, in_float64):
    """Sums `[rows, size]` over its last axis.

    By products, because XLA would merge two successive sums into one.
    """
    t, size = _sum_blocks(t, rows, size, _BLOCK, lambda t: tf.reduce_sum(t, 1, keepdims=True))
    if in_float64:
        return _in_float64(t)
    for _ in range(2):
        t, size = _sum_blocks(t, rows, size, _SHORT_BLOCK, _times_ones)
    return _times_ones(t)


def _sum_rows_in_xla(t, rows, size):
    """Sums `[rows, size]` over its last axis, by products: XLA vectorizes these, and no sums along
    the last axis.

    It computes the product of a single row entry by entry, and vectorizes products of blocks only
    if a row has a power of two of them.
    """
    if size < _LONG_ROW and not (isinstance(rows, int) and rows == 1):
        return _times_ones(t)
    block = _BLOCK if (size // _BLOCK).bit_count() == 1 else _SHORT_BLOCK
    return _in_float64(_sum_blocks(t, rows, size, block, _times_ones)[0])


def _sum_blocks(t, rows, size, block, sum_block):
    """Returns `[rows, shorter]` with the same sums, and its second size."""
    blocks = size // block
    if isinstance(blocks, int) and blocks == 0:
        return t, size
    total = tf.reshape(
        sum_block(tf.reshape(t[:, : blocks * block], [rows * blocks, block])), [rows, blocks]
    )
    return _with_rest(total, blocks, t, size % block)


def _with_rest(total, count, t, rest):
    """Returns sums of the entries of t with the last entries along axis 1, and how many these are together."""
    if isinstance(rest, int) and rest == 0:
        return total, count
    return tf.concat([total, t[:, sizes_of(t)[1] - rest :]], 1), count + rest


def _times_ones(t):
    return tf.matmul(t, tf.ones([sizes_of(t)[1], 1], t.dtype))


def _sum_columns(t, before, size, after, in_xla, in_float64):
    """Sums `[before, size, after]` over its second axis."""
    if in_xla:  # which vectorizes additions of slices, and computes t as it adds
        length = size // _SLICES
        rest = size % _SLICES
        total, _ = _with_rest(tf.add_n(tf.split(t[:, : size - rest], _SLICES, 1)), length, t, rest)
        return _in_float64(total) if length > _MOST_ROWS_IN_XLA else _sum_few_rows(total)

    for _ in range(1 if in_float64 else 3):
        if not isinstance(size, int) or size >= 4 * _PARTS:  # vectors of consecutive rows are added
            length = size // _PARTS
            total = _sum_few_rows(
                tf.reshape(t[:, : _PARTS * length], [before, _PARTS, length * after])
            )
            t, size = _with_rest(
                tf.reshape(total, [before, length, after]), length, t, size % _PARTS
            )
    return _in_float64(t) if in_float64 else _sum_few_rows(t)


def _in_float64(t):
    return tf.cast(tf.reduce_sum(tf.cast(t, tf.float64), 1, keepdims=True), t.dtype)


def _sum_few_rows(t):
    if t.shape[0] == 1:  # outside XLA, several times faster than reduce_sum
        return tf.raw_ops.BiasAddGrad(out_backprop=t[0])[tf.newaxis, tf.newaxis]
    return tf.reduce_sum(t, 1, keepdims=True)
