"""The norm in operations of Keras, for JAX, PyTorch and what else Keras runs on, which derive the gradient themselves.

`jax.jit` and `torch.compile` fuse the operations. Squares are not shrunk first, as in `norm.tensorflow.passes`: the
derivative of a shrunk root overflows. So rows are safe up to a root of the sum of squares of 1.8e19, the root of the
largest float32.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

import keras
from keras import ops

from rmsnorm_tf.norm.arguments import NormSpec, Tensors, wide_dtype

P = ParamSpec("P")
R = TypeVar("R")


def compute(spec: NormSpec, t: Tensors, fused: bool | None) -> Any:
    """Returns y. `fused` has no effect: whoever calls compiles, with `jax.jit`, `torch.compile` or `jit_compile`."""
    dtype = keras.backend.standardize_dtype(t.x.dtype)
    wide = wide_dtype(dtype)
    x = t.x if dtype == wide else ops.cast(t.x, wide)
    broadcast = [size if a in spec.scale_axes else 1 for a, size in enumerate(x.shape)]
    if t.scale is not None and wide == "float32" and _is_of_keras(spec, len(broadcast)):
        y = ops.rms_normalization(x, t.scale, spec.axes, spec.epsilon)  # fused on PyTorch
    else:
        head = x if spec.prefix is None else x[(slice(None),) * spec.axes[0] + (slice(spec.prefix),)]
        count = math.prod([head.shape[a] for a in spec.axes])
        y = x * ops.rsqrt(ops.sum(ops.square(head), spec.axes, keepdims=True) / count + spec.epsilon)
        y = y if t.scale is None else y * ops.reshape(t.scale, broadcast)
    if t.offset is not None:
        y = y + ops.reshape(t.offset, broadcast)
    if t.gate is not None:
        y = y * ops.silu(ops.cast(t.gate, wide))
    return y if dtype == wide else ops.cast(y, dtype)


def _is_of_keras(spec, rank):
    """Whether Keras's function computes a norm with a gain too: over all entries of the last axes, each with a gain."""
    return spec.prefix is None and spec.axes == spec.scale_axes == tuple(range(rank - len(spec.axes), rank))


def set_fused(value: bool | None) -> NoReturn:
    """Raises a RuntimeError: compiled programs of this package exist on TensorFlow alone."""
    check_tensorflow("set_fused", "Compile the caller instead, with jax.jit, torch.compile or jit_compile=True.")


def check_tensorflow(what: str, instead: str) -> NoReturn:
    """Raises a RuntimeError, because Keras does not run on TensorFlow."""
    raise RuntimeError(f"{what} needs the TensorFlow backend, and Keras runs on {keras.backend.backend()}. {instead}")


def without_autograph(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the function."""
    return function


def remembering(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the function: `torch.compile` traces no cache."""
    return function


def as_tensor(value: Any, dtype: str | None = None) -> Any:
    """Returns a value as a tensor, of this dtype if it has none of its own."""
    return ops.convert_to_tensor(value, None if hasattr(value, "dtype") else dtype)


def shape_of(t: Any) -> tuple[int, ...]:
    """Returns the shape of a tensor."""
    return tuple(t.shape)


def ensure_shape(t: Any, shape: tuple[int | None, ...]) -> Any:
    """Returns the tensor: all sizes are known and have been compared."""
    return t


def with_sizes_of(t: Any, x: Any, axes: Sequence[int], name: str) -> Any:
    """Returns t: all sizes are known and have been compared."""
    return t


def is_ragged(t: Any) -> bool:
    """Whether rows of t may differ in length: never."""
    return False


def is_sparse(t: Any) -> bool:
    """Whether what a symbolic tensor stands for holds only some of its entries."""
    return isinstance(t, keras.KerasTensor) and t.sparse


def map_rows(function: Callable[[Any], Any], t: Any) -> NoReturn:
    """Raises a RuntimeError: there are no ragged tensors."""
    check_tensorflow("A ragged tensor", "Pad it and pass a mask.")
