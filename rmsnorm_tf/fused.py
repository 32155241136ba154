"""`rms_norm`, the public function."""

from collections.abc import Sequence

import tensorflow as tf

from rmsnorm_tf import functional


def rms_norm(
    x: tf.Tensor,
    scale: tf.Tensor | None = None,
    offset: tf.Tensor | None = None,
    *,
    axis: int | Sequence[int] = -1,
    scale_axis: int | Sequence[int] | None = None,
    partial: float | None = None,
    epsilon: float = 1e-6,
    fused: bool | None = None,
) -> tf.Tensor:
    """Divides `x` by its root mean square over `axis`."""
    x = tf.convert_to_tensor(x)
    rank = x.shape.rank
    axes = tuple(sorted({int(a) % rank for a in _tuple(axis)}))
    scale_axes = axes if scale_axis is None else tuple(sorted(int(a) % rank for a in _tuple(scale_axis)))
    prefix = None if partial is None else functional.prefix_size(x.shape[axes[0]], partial)
    shape = [x.shape[a] if a in scale_axes else 1 for a in range(rank)]
    scale = None if scale is None else tf.reshape(scale, shape)
    offset = None if offset is None else tf.reshape(offset, shape)
    return functional.normalize(x, scale, offset, axes, prefix, epsilon)


def _tuple(axis):
    return tuple(axis) if isinstance(axis, Sequence) else (axis,)
