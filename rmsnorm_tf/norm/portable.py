"""Computes the norm in operations of Keras; helpers for backends that know all sizes."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import keras
from keras import ops

from rmsnorm_tf.norm.arguments import NormInputs, NormSpec, wide_dtype

F = TypeVar("F")
NOT_DENSE = ()  # the type of no tensor


def compute(spec: NormSpec, t: NormInputs, fused: bool | None) -> Any:
    """Returns y, on a backend without gradients. `fused` has no effect."""
    return forward(t, spec, inverse_rms)


def forward(t: NormInputs, spec: NormSpec, inverse_rms: Callable[[Any, NormSpec], Any]) -> Any:
    """Returns y, given the function that returns rstd."""
    dtype = keras.backend.standardize_dtype(t.x.dtype)
    wide = wide_dtype(dtype)
    x = ops.cast(t.x, wide)
    weight_shape = [size if a in spec.scale_axes else 1 for a, size in enumerate(x.shape)]
    y = x * inverse_rms(x, spec)
    if t.scale is not None:
        y = y * ops.reshape(t.scale, weight_shape)
    if t.offset is not None:
        y = y + ops.reshape(t.offset, weight_shape)
    if t.gate is not None:
        y = y * ops.silu(ops.cast(t.gate, wide))
    return ops.cast(y, dtype)


def inverse_rms(x: Any, spec: NormSpec) -> Any:
    """Returns rstd = 1 / sqrt(mean(x**2) + epsilon), one number a row."""
    prescale = spec.prescale(keras.backend.standardize_dtype(x.dtype))
    mean = mean_of_first(ops.square(x * prescale), spec)
    return ops.rsqrt(mean + spec.epsilon * prescale * prescale) * prescale


def mean_of_first(t: Any, spec: NormSpec) -> Any:
    """Returns the mean over the statistic's entries."""
    if spec.prefix is not None:
        t = t[(slice(None),) * spec.axes[0] + (slice(spec.prefix),)]
    return ops.sum(t, spec.axes, keepdims=True) / math.prod(t.shape[a] for a in spec.axes)


def set_fused(value: bool | None) -> NoReturn:
    """Raises a RuntimeError: compiled programs of this package exist on TensorFlow alone."""
    raise RuntimeError(
        f"set_fused needs the TensorFlow backend, and Keras runs on {keras.backend.backend()}. "
        "Leave the call out: on this backend the package compiles nothing."
    )


def without_autograph(function: F) -> F:
    """Returns the function as it is."""
    return function


def as_tensor(value: Any, dtype: str | None = None) -> Any:
    """Returns a value as a tensor, of this dtype if it has none of its own."""
    if isinstance(value, keras.Variable):
        return value.value  # a conversion takes longer
    return ops.convert_to_tensor(value, None if hasattr(value, "dtype") else dtype)


def shape_of(t: Any) -> tuple[int, ...]:
    """Returns the shape of a tensor, whose sizes are tensors while `torch.jit` traces."""
    return tuple(int(size) if hasattr(size, "dtype") else size for size in t.shape)


def split_last_axis(t: Any, sizes: Sequence[int]) -> list[Any]:
    """Splits a tensor along its last axis; with `ops.split`, `torch.export` fails."""
    ends = list(itertools.accumulate(sizes))
    return [t[..., end - size : end] for end, size in zip(ends, sizes, strict=True)]
