"""Checks the arguments of a norm, and resolves them for the shape of an input."""

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

Axis = int | tuple[int, ...]

# With a smaller one, inputs of the size of its root lose digits.
_SMALLEST_EPSILON = 1e-34


@dataclass(frozen=True)
class NormSpec:
    """Describes a norm of inputs of one shape: axes, partial entries, epsilon, groups.

    Attributes:
        axes: Axes of the statistic, ascending, counted from the front.
        scale_axes: Axes of scale and offset, ascending, counted from the front.
        prefix: Number k of leading entries that a partial statistic takes, or None for all entries.
        epsilon: Added to the mean square, inside the root.
        groups: Into how many groups the axis is cut. Each has a statistic, from its first k entries
            if partial.
    """

    axes: tuple[int, ...]
    scale_axes: tuple[int, ...]
    prefix: int | None
    epsilon: float
    groups: int = 1

    def scale_shape(self, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """Returns the shape that scale and offset have for an input of shape `shape`."""
        return tuple(shape[a] for a in self.scale_axes)

    def prescale(self, dtype: str) -> float:
        """Returns the power of two, at most 1, by which entries of a dtype are multiplied before
        they are squared.

        It is the smallest that keeps squares as small as the last bit of epsilon from being flushed
        to zero.
        """
        lowest, bits = (-1022, 53) if dtype == "float64" else (-126, 24)
        return 2.0 ** min(0, math.ceil((lowest + bits - math.log2(self.epsilon)) / 2))

    def of_a_group(self) -> "NormSpec":
        """Returns the spec for an input whose axis became `[groups, entries of a group]`."""
        [axis] = self.axes
        scale_axes = [(axis, axis + 1) if a == axis else (a + (a > axis),) for a in self.scale_axes]
        return replace(self, axes=(axis + 1,), scale_axes=sum(scale_axes, ()), groups=1)


class NormInputs(NamedTuple):
    """Groups the tensors of a norm, or their gradients; gate has the shape and dtype of x."""

    x: Any
    gate: Any = None
    scale: Any = None
    offset: Any = None

    def unflatten(self, flat: Iterable) -> "NormInputs":
        """Fills the places that are not None with these values."""
        values = iter(flat)
        return NormInputs(*(None if t is None else next(values) for t in self))

    def flatten(self) -> list:
        """Returns the tensors that are not None."""
        return [t for t in self if t is not None]


def wide_dtype(dtype: str) -> str:
    """Returns the dtype that an input of `dtype` is normalized in."""
    return "float64" if dtype == "float64" else "float32"


def resolve(
    shape: tuple[int | None, ...],
    axis: Axis,
    scale_axis: Axis | None,
    partial: float | None,
    epsilon: float,
    groups: int,
) -> NormSpec:
    """Resolves checked arguments for one input shape.

    Raises:
        ValueError: The shape lacks an axis, or has an unknown size where a known one is needed.
    """
    axes = _resolve_axes("axis", axis, shape)
    scale_axes = axes if scale_axis is None else _resolve_axes("scale_axis", scale_axis, shape)
    if partial is None and groups == 1:
        return NormSpec(axes, scale_axes, None, epsilon)
    size = shape[axes[0]]
    if size is None:
        which = f"partial={partial}" if partial is not None else f"groups={groups}"
        raise ValueError(
            f"{which} takes a part of axis {axis}, whose size is unknown in an input of shape "
            f"{shape}. Give that axis a fixed size, or leave out {which}."
        )
    if size % groups:
        raise ValueError(
            f"groups={groups} does not divide {size}, the size of axis {axis} in an input of shape "
            f"{shape}. Choose a divisor."
        )
    prefix = size // groups if partial is None else prefix_size(size // groups, partial)
    return NormSpec(axes, scale_axes, None if prefix == size // groups else prefix, epsilon, groups)


def prefix_size(size: int, partial: float) -> int:
    """Returns k = ceil(size * partial), the number of entries in a partial statistic; at least 1.

    The rounding of `partial` to a float32 must not add an entry: 10% of 30 is 3, though `30 * 0.1 >
    3`.
    """
    k = size * partial
    nearest = round(k)
    return max(1, nearest if abs(k - nearest) <= 1e-7 * k else math.ceil(k))


def check_axis(name: str, axis: Any) -> Axis:
    """Returns `axis` as a Python integer or a tuple of them, in the order given."""
    if _is_integer(axis):
        return int(axis)
    axes = tuple(axis) if isinstance(axis, Iterable) else ()
    if not axes or not all(map(_is_integer, axes)):
        raise ValueError(
            f"{name} must be an integer or a non-empty sequence of integers, got {axis!r}. "
            f"Pass for example {name}=-1 or {name}=(1, 2)."
        )
    return tuple(int(a) for a in axes)


def check_epsilon(epsilon: float) -> float:
    """Returns `epsilon` as a Python float: finite, and large enough for float32."""
    if not _is_real(epsilon) or not _SMALLEST_EPSILON <= epsilon < math.inf:
        raise ValueError(
            f"epsilon must be a finite number of at least {_SMALLEST_EPSILON}, got {epsilon!r}. "
            "It keeps the gradient of a row of zeros finite; 1e-6 is usual."
        )
    return float(epsilon)


def check_partial(partial: float | None, axis: Axis) -> float | None:
    """Returns `partial` as a Python float in (0, 1], or None."""
    if partial is None:
        return None
    if not _is_real(partial) or not 0 < partial <= 1:
        raise ValueError(
            f"partial must be None or a number above 0 and at most 1, got {partial!r}. "
            "The paper uses 0.0625; None takes the statistic over all entries."
        )
    _check_single(f"partial={partial}", axis)
    return float(partial)


def check_groups(groups: int, axis: Axis) -> int:
    """Returns `groups` as a Python integer of at least 1."""
    if not _is_integer(groups) or groups < 1:
        raise ValueError(
            f"groups must be an integer of at least 1, got {groups!r}. 1 is a single statistic."
        )
    if groups > 1:
        _check_single(f"groups={groups}", axis)
    return int(groups)


def _check_single(argument, axis):
    if isinstance(axis, tuple) and len(axis) > 1:
        raise ValueError(
            f"{argument} needs a single axis, got axis={axis}: the entries of several axes have no "
            "agreed order. Merge the axes with a reshape, or drop the argument."
        )


def check_flag(name: str, value: bool | None, allowed: tuple = (True, False)) -> bool | None:
    """Returns `value`, which must be one of the `allowed` constants itself."""
    if not any(value is a for a in allowed):
        choices = ", ".join(map(str, allowed))
        raise ValueError(f"{name} must be one of {choices}, got {value!r}. Pass one of them.")
    return value


def _resolve_axes(name: str, axis: Axis, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    rank = len(shape)
    given = (axis,) if isinstance(axis, int) else axis
    for a in given:
        if not -rank <= a < rank:
            allowed = f"allowed are {-rank} to {rank - 1}" if rank else "a scalar has no axes"
            remedy = f"Choose another {name}, or check the input's rank."
            if a in shape:  # torch.nn.RMSNorm(512)
                remedy = (
                    f"{name} takes the number of an axis, not its size. Use -1 for the last axis."
                )
            raise ValueError(
                f"{name}={axis} is out of range for an input of shape {shape}: {allowed}. {remedy}"
            )
        if shape[a] == 0 and name == "axis":
            raise ValueError(
                f"axis={axis} has size 0 in an input of shape {shape}, and the mean of no entries "
                "is undefined. Choose an axis with entries."
            )
    axes = tuple(sorted(a % rank for a in given))
    if len(set(axes)) < len(axes):
        raise ValueError(
            f"{name}={axis} names an axis twice in an input of shape {shape}. Drop one of the two."
        )
    return axes


def _is_integer(value) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def _is_real(value) -> bool:
    return isinstance(value, (numbers.Real, np.floating)) and not isinstance(
        value, (bool, np.bool_)
    )
