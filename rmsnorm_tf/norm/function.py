"""`rms_norm`: it checks arguments and shapes, then computes."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from rmsnorm_tf.norm.arguments import (
    NormInputs,
    check_axis,
    check_epsilon,
    check_flag,
    check_groups,
    check_partial,
    resolve,
    wide_dtype,
)
from rmsnorm_tf.norm.backend import compute, tensors

Shape = tuple[int | None, ...]


@tensors.without_autograph
def rms_norm(
    x: Any,
    scale: Any = None,
    offset: Any = None,
    *,
    gate: Any = None,
    axis: int | Sequence[int] = -1,
    scale_axis: int | Sequence[int] | None = None,
    partial: float | None = None,
    epsilon: float = 1e-6,
    groups: int = 1,
    fused: bool | None = None,
) -> Any:
    """Divides `x` by its root mean square over `axis`.

    The equation is `y = x / sqrt(mean(x**2, axis) + epsilon) * scale + offset`, with epsilon inside
    the root. The mean, the root and the products are computed in at least float32, in float64 for a
    float64 `x`, and `y` is rounded to the dtype of `x` at the end. The gradient keeps `x` and one
    number per row, and can itself be differentiated.

    In float32, a row is safe while the root of its sum of squares is below 1e34 * sqrt(epsilon);
    above, that sum may overflow, and the row becomes zero.

    >>> y = rms_norm([[3.0, 4.0]], epsilon=1e-12)
    >>> print(keras.ops.convert_to_numpy(y).round(4))
    [[0.8485 1.1314]]

    Args:
        x: float16, bfloat16, float32 or float64, dense and of known rank; or a `keras.KerasTensor`.
        scale: The gain, with one dimension for each of `scale_axis`, in the order of x's
            dimensions. Default: None, no gain.
        offset: Added after the gain, shaped like `scale`. Default: None, no offset.
        gate: Shape and dtype of `x`; `silu(gate) = gate * sigmoid(gate)` multiplies the result,
            which is rounded once. Default: None, no gate.
        axis: Axis or axes of the mean, in any order; negative ones count from the end. Default: -1.
        scale_axis: Axis or axes of `scale` and `offset`. Default: None, the same as `axis`.
        partial: p in (0, 1]; the mean takes only the first `ceil(size * p)` entries of the single
            `axis`. Default: None, all entries.
        epsilon: Added to the mean square. Default: 1e-6.
        groups: Number of equal groups that the single `axis` is cut into. Each has a statistic of
            its own; the gain keeps one entry per entry of the axis. Default: 1.
        fused: True compiles with XLA, once for every new shape. False never compiles, which tf2onnx
            needs for a static shape. None (default) compiles large inputs of a static shape in
            graphs, and nothing in eager mode. `set_fused` overrides it.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: `x`, `scale` or `offset` is not floating point, or `gate` has another dtype than
            `x`.
        ValueError: An argument is out of its range, or does not fit the shape of `x`.

    Reference:
        Zhang & Sennrich 2019, arXiv 1910.07467, equation 4 and section 3.2 (partial).
    """
    axis = check_axis("axis", axis)
    options: dict[str, Any] = {
        "axis": axis,
        "scale_axis": None if scale_axis is None else check_axis("scale_axis", scale_axis),
        "partial": check_partial(partial, axis),
        "epsilon": check_epsilon(epsilon),
        "groups": check_groups(groups, axis),
        "fused": check_flag("fused", fused, (True, False, None)),
    }
    if any(isinstance(t, keras.KerasTensor) for t in (x, scale, offset, gate)):
        return _Symbolic(**options).symbolic_call(x, scale, offset, gate=gate)
    return _normalize_unchecked(x, scale, offset, gate, **options)


def _normalize_unchecked(x, scale, offset, gate, **options):
    x = x if isinstance(x, tensors.NOT_DENSE) else tensors.as_tensor(x)
    return normalize(NormInputs(x, gate, scale, offset), check_tensor("x", x), **options)


def normalize(given, dtype, *, axis, scale_axis, partial, epsilon, groups, fused):
    """Computes `rms_norm` of inputs, x of this dtype, with arguments that are checked already."""
    shape = tensors.shape_of(given.x)
    if shape is None:
        raise ValueError(
            "x must have a known rank, got a tensor of unknown rank. Use tf.ensure_shape."
        )
    spec = resolve(shape, axis, scale_axis, partial, epsilon, groups)
    gate = _like_x("gate", given.gate, given.x, range(len(shape)), given.x.dtype)
    if gate is not None and gate.dtype != given.x.dtype:
        raise TypeError(
            f"gate must have the dtype of x, {dtype}, got "
            f"{keras.backend.standardize_dtype(gate.dtype)}. Cast one of them."
        )
    weights = [_weight(name, given, spec, wide_dtype(dtype)) for name in ("scale", "offset")]
    t = NormInputs(given.x, gate, *weights)
    if groups == 1:
        return compute(spec, t, fused)
    y = compute(spec.of_a_group(), _in_groups(spec, t), fused)
    return ops.reshape(y, ops.shape(given.x))


@keras.saving.register_keras_serializable(package="rmsnorm_tf", name="rms_norm")
class _Symbolic(keras.Operation):
    """`rms_norm` in a functional model."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name)
        self._options = {"scale_axis": None, "partial": None, "fused": None, **options}

    def call(self, x, scale=None, offset=None, gate=None):
        return _normalize_unchecked(x, scale, offset, gate, **self._options)

    def get_config(self) -> dict[str, Any]:
        given = {key: value for key, value in self._options.items() if value is not None}
        return {"name": self.name, **given}


def _like_x(name, value, x, axes, dtype):
    """Returns a gate or a weight as a tensor that has the sizes of x at these axes, or None."""
    if value is None:
        return None
    if isinstance(value, int):
        raise TypeError(
            f"{name} must be a tensor or None, got {value}. Pass None for no {name}, and an axis "
            f"as axis={value}."
        )
    t = tensors.as_tensor(value, dtype)
    of_x = tensors.shape_of(x)
    needed = tuple(of_x[a] for a in axes)
    if tensors.shape_of(t) == needed and None not in needed:
        return t
    check_shape(name, tensors.shape_of(t), of_x, axes)
    return tensors.with_sizes_of(t, x, axes, name)  # where arithmetic would broadcast


def check_shape(name: str, shape: Shape | None, of_x: Shape, axes: Sequence[int]) -> None:
    """Raises a ValueError unless a tensor of this shape may have the sizes of x at these axes."""
    needed = tuple(of_x[a] for a in axes)
    if shape is not None and (
        len(shape) != len(needed)
        or any(a != b and None not in (a, b) for a, b in zip(shape, needed, strict=True))
    ):
        raise ValueError(
            f"{name} has shape {shape}, but x of shape {of_x} needs {needed}: its sizes at "
            f"{tuple(axes)}. It is not broadcast: reshape it, or choose another scale_axis. A "
            "layer accepts only the sizes that it was built with."
        )


FLOATING = ("float16", "bfloat16", "float32", "float64")


def check_tensor(name: str, t: Any) -> str:
    """Returns the dtype of t, which must be a dense tensor of a floating dtype."""
    if not hasattr(t, "dtype"):
        raise TypeError(
            f"{name} must be a tensor, got {type(t).__name__}. Use keras.ops.convert_to_tensor."
        )
    of_input = isinstance(t, keras.KerasTensor) and (t.sparse or getattr(t, "ragged", False))
    if of_input or isinstance(t, tensors.NOT_DENSE):
        raise TypeError(
            f"{name} must be dense, got a sparse or ragged tensor. Use tf.sparse.to_dense, or "
            "tf.ragged.map_flat_values(norm, x) if x.flat_values has the rows."
        )
    dtype = keras.backend.standardize_dtype(t.dtype)
    if dtype not in FLOATING:
        raise TypeError(
            f"{name} must be float16, bfloat16, float32 or float64, got {dtype}. "
            f'Cast it first, for example with keras.ops.cast({name}, "float32").'
        )
    return dtype


def _weight(name, given, spec, wide):
    """Returns scale or offset in the wide dtype, or None."""
    weight = _like_x(name, getattr(given, name), given.x, spec.scale_axes, wide)
    if weight is None or check_tensor(name, weight) == wide:
        return weight
    return ops.cast(weight, wide)


def _in_groups(spec, t):
    """Returns the tensors with the axis reshaped to `[groups, entries of a group]`."""
    [axis] = spec.axes

    def cut(t, axis):
        sizes = ops.shape(t)
        return ops.reshape(
            t, [*sizes[:axis], spec.groups, t.shape[axis] // spec.groups, *sizes[axis + 1 :]]
        )

    along = spec.scale_axes.index(axis) if axis in spec.scale_axes else None
    weights = [w if w is None or along is None else cut(w, along) for w in (t.scale, t.offset)]
    return NormInputs(cut(t.x, axis), None if t.gate is None else cut(t.gate, axis), *weights)
