"""Sums over axes that are exact to a few roundings, however long they are, and fast on a CPU.

Adding one float32 after the other loses a digit with every hundredfold length. So a long sum is cut into blocks, which
are summed in float32, and their sums are summed in float64. TFLite and ONNX lack sums in float64, so a statistic that
may be exported is cut into blocks again. The number of operations does not grow with a size, but for at most eight
slices of a row and the levels of these blocks.

Accelerators sum in a tree by themselves, and may round the factors of a matrix product.
"""

import functools
import itertools
import operator
import os
from collections.abc import Iterator, Sequence

import tensorflow as tf

# Entries of a row in a block of TensorFlow's sum, which is a tree, or of a product that XLA vectorizes; in a block of a
# product that may add one entry after the other; in a product of whole rows or slices in XLA.
_BLOCK = 512
_PRODUCT = 64
_LONGEST_PRODUCT = 1024

# Parts of a column, which are added like vectors. A column of fewer rows than the last number stays whole.
_SLICES = 8
_PARTS = 64
_PARTS_OF_UNKNOWN_SIZE = 256
_FEW_ROWS = 128
_MOST_ROWS_IN_XLA = 4096  # which XLA sums in blocks by itself

# How often an axis of unknown size is cut.
_LEVELS = 2


def _sums_from_environment() -> bool | None:
    """Returns True for `products`, False for `plain`, None if `RMSNORM_TF_SUMS` is not set."""
    given = os.environ.get("RMSNORM_TF_SUMS", "")
    if given not in ("products", "plain", ""):
        raise ValueError(f"The environment variable RMSNORM_TF_SUMS must be products, plain or empty, got {given!r}.")
    return given == "products" if given else None


_given = _sums_from_environment()


@functools.cache
def for_cpus() -> bool:
    """Whether to write sums for a CPU: in blocks, and inside XLA as matrix products."""
    if _given is not None:
        return _given
    return all(device.device_type == "CPU" for device in tf.config.list_logical_devices())


def sum_over(t: tf.Tensor, axes: Sequence[int], in_xla: bool = False, in_float64: bool = False) -> tf.Tensor:
    """Returns the sum over ascending axes, counted from the front, which keep size 1.

    Args:
        t: float32 or float64.
        axes: The axes.
        in_xla: Whether XLA compiles the sum.
        in_float64: Whether the sums of blocks may be summed in float64.
    """
    if not for_cpus():
        return tf.reduce_sum(t, axes, keepdims=True)
    for first, end in reversed(list(_runs(axes))):
        t = _sum_over_run(t, first, end, in_xla, in_float64)
    return t


def product_of_rows(t: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns the sum of `t * weight` over the last axis, which keeps size 1, inside XLA."""
    size = t.shape[-1]
    if not for_cpus() or size is None or size > _LONGEST_PRODUCT:
        return sum_over(t * weight, [t.shape.rank - 1], in_xla=True, in_float64=True)
    sizes = sizes_of(t)
    return tf.reshape(tf.matmul(tf.reshape(t, [-1, size]), weight[:, tf.newaxis]), [*sizes[:-1], 1])


def _runs(axes) -> Iterator[tuple[int, int]]:
    """Yields the first and the end of every run of axes that follow each other."""
    for _, run in itertools.groupby(enumerate(axes), lambda pair: pair[1] - pair[0]):
        run = [axis for _, axis in run]
        yield run[0], run[-1] + 1


def _sum_over_run(t, first, end, in_xla, in_float64):
    sizes = sizes_of(t)
    before, size, after = (_product(part) for part in (sizes[:first], sizes[first:end], sizes[end:]))
    in_xla = in_xla and isinstance(size, int)  # slices need known bounds
    is_row = isinstance(after, int) and after == 1
    if isinstance(size, int) and size < (2 * _BLOCK if is_row else _FEW_ROWS) and not (is_row and in_xla):
        return tf.reduce_sum(t, range(first, end), keepdims=True)
    if is_row:
        total = _sum_rows(tf.reshape(t, [before, size]), before, size, in_xla, in_float64)
    else:
        total = _sum_columns(tf.reshape(t, [before, size, after]), before, size, after, in_xla, in_float64)
    return tf.reshape(total, [*sizes[:first], *[1] * (end - first), *sizes[end:]])


def _sum_rows(t, rows, size, in_xla, in_float64):
    """Sums `[rows, size]` over its last axis."""
    if in_xla:
        return _sum_rows_in_xla(t, rows, size)
    if isinstance(size, int) and size < 2 * _BLOCK:
        return _sum_rows_at_once(t)
    blocks, rest = size // _BLOCK, size % _BLOCK
    total = _sum_blocks(t, rows, blocks, _BLOCK, _sum_rows_at_once)
    total = _sum_in_float64(total) if in_float64 else _sum_by_products(total, rows, blocks, _LEVELS)
    return total if _is_zero(rest) else total + _sum_rows_at_once(t[:, blocks * _BLOCK :])


def _sum_rows_in_xla(t, rows, size):
    """Sums `[rows, size]` over its last axis, by products: XLA vectorizes these, and no sums along the last axis.

    It vectorizes products of blocks only if a row has a power of two of them; other rows are cut into slices or short
    blocks. It computes several products of a single row in one loop, entry by entry, so a row that may be single gets
    no slices, and its rest is summed in float64.
    """
    if size < _LONGEST_PRODUCT:
        return _product_with_ones(t)
    is_many = isinstance(rows, int) and rows > 1
    if (size // _BLOCK).bit_count() == 1:
        block = _BLOCK
    elif is_many and size <= _SLICES * _LONGEST_PRODUCT:
        return _sum_slices_of_rows(t, size)
    else:
        block = _PRODUCT
    blocks, rest = divmod(size, block)
    total = _sum_in_float64(_sum_blocks(t, rows, blocks, block, _product_with_ones))
    sum_rest = _product_with_ones if is_many else _sum_in_float64
    return total if rest == 0 else total + sum_rest(t[:, blocks * block :])


def _sum_slices_of_rows(t, size):
    """Sums `[rows, size]` over its last axis, in a few slices."""
    count = -(-size // _LONGEST_PRODUCT)
    ends = [size * i // count for i in range(count + 1)]
    return tf.add_n([_product_with_ones(t[:, first:end]) for first, end in itertools.pairwise(ends)])


def _sum_blocks(t, rows, blocks, block, sum_block):
    """Returns the sum of each block of a row, `[rows, blocks]`."""
    return tf.reshape(sum_block(tf.reshape(t[:, : blocks * block], [rows * blocks, block])), [rows, blocks])


def _sum_by_products(t, rows, size, levels):
    """Sums `[rows, size]` over its last axis, by products: XLA would merge two successive sums into one long sum."""
    if size < 2 * _PRODUCT if isinstance(size, int) else levels == 0:
        return _product_with_ones(t)
    blocks, rest = size // _PRODUCT, size % _PRODUCT
    total = _sum_blocks(t, rows, blocks, _PRODUCT, _product_with_ones)
    total = _sum_by_products(total, rows, blocks, levels - 1)
    return total if _is_zero(rest) else total + _product_with_ones(t[:, blocks * _PRODUCT :])


def _sum_rows_at_once(t):
    return tf.reduce_sum(t, 1, keepdims=True)


def _product_with_ones(t):
    return tf.matmul(t, tf.ones([sizes_of(t)[1], 1], t.dtype))


def _sum_columns(t, before, size, after, in_xla, in_float64, levels=_LEVELS):
    """Sums `[before, size, after]` over its second axis."""
    is_known = isinstance(size, int)
    if size < _FEW_ROWS if is_known else levels == 0:
        return _sum_few_rows(t) if is_known else _product_with_ones_before(t)
    if in_xla:
        return _sum_columns_in_xla(t, size)
    if is_known or in_float64:
        parts, sum_parts = _PARTS, _sum_few_rows
    else:  # see _sum_by_products
        parts, sum_parts = _PARTS_OF_UNKNOWN_SIZE, _product_with_ones_before
    length, rest = size // parts, size % parts
    total = sum_parts(tf.reshape(t[:, : parts * length], [before, parts, length * after]))
    total = tf.reshape(total, [before, length, after])
    if in_float64:
        total = _sum_in_float64(total)
    else:
        total = _sum_columns(total, before, length, after, in_xla, in_float64, levels - 1)
    return total if _is_zero(rest) else total + sum_parts(t[:, parts * length :])


def _sum_columns_in_xla(t, size):
    """Adds slices first: XLA vectorizes that, and computes t as it adds."""
    length = size // _SLICES
    total = tf.add_n([t[:, i * length : (i + 1) * length] for i in range(_SLICES)])
    total = _sum_few_rows(total) if length <= _MOST_ROWS_IN_XLA else _sum_in_float64(total)
    return total if _is_zero(size % _SLICES) else total + _sum_few_rows(t[:, _SLICES * length :])


def _sum_in_float64(t):
    return tf.cast(tf.reduce_sum(tf.cast(t, tf.float64), 1, keepdims=True), t.dtype)


def _product_with_ones_before(t):
    return tf.matmul(tf.ones([sizes_of(t)[0], 1, sizes_of(t)[1]], t.dtype), t)


def _sum_few_rows(t):
    if t.shape[0] == 1:  # outside XLA, several times faster than reduce_sum
        return tf.raw_ops.BiasAddGrad(out_backprop=t[0])[tf.newaxis, tf.newaxis]
    return tf.reduce_sum(t, 1, keepdims=True)


def _is_zero(rest):
    return isinstance(rest, int) and rest == 0


def sizes_of(t: tf.Tensor) -> list[int | tf.Tensor]:
    """Returns the sizes of t, as scalar tensors where they are unknown."""
    if t.shape.is_fully_defined():
        return list(t.shape)
    sizes = tf.shape(t)
    return [sizes[a] if size is None else size for a, size in enumerate(t.shape)]


def _product(sizes):
    return functools.reduce(operator.mul, sizes, 1)
