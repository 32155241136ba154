"""The equations in NumPy float64, written to be read next to the paper, not to be fast."""

import math

import numpy as np


def rms_norm(x, scale=None, offset=None, axis=-1, scale_axis=None, k=None, epsilon=1e-6):
    """Returns `x / sqrt(mean(x**2) + epsilon) * scale + offset` (Zhang & Sennrich 2019, eq. 4).

    The mean runs over `axis`, or over its first `k` entries. `scale` and `offset` have one
    dimension for each of `scale_axis` (default: `axis`), in the order of x's dimensions.
    """
    x = np.asarray(x, np.float64)
    axes = _normalize_axes(axis, x.ndim)
    head = x if k is None else np.take(x, range(k), axis=axes[0])
    count = math.prod(head.shape[a] for a in axes)
    mean_square = np.sum(head**2, axis=axes, keepdims=True) / count
    y = x / np.sqrt(mean_square + epsilon)
    scale_axes = axes if scale_axis is None else _normalize_axes(scale_axis, x.ndim)
    shape = [x.shape[a] if a in scale_axes else 1 for a in range(x.ndim)]
    if scale is not None:
        y = y * np.reshape(np.asarray(scale, np.float64), shape)
    if offset is not None:
        y = y + np.reshape(np.asarray(offset, np.float64), shape)
    return y


def layer_norm(x, epsilon=1e-6):
    """Returns `(x - mean(x)) / sqrt(var(x) + epsilon)` over the last axis (Ba et al. 2016)."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, -1, keepdims=True) + epsilon)


def numerical_gradient(function, x, step=1e-6):
    """Returns the gradient of the scalar `function` at `x` by central differences."""
    x = np.array(x, np.float64)
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        kept = x[i]
        x[i] = kept + step
        above = function(x)
        x[i] = kept - step
        gradient[i] = (above - function(x)) / (2 * step)
        x[i] = kept
    return gradient


def _normalize_axes(axis, rank):
    axes = (axis,) if np.ndim(axis) == 0 else tuple(axis)
    return tuple(sorted(int(a) % rank for a in axes))
