"""The arguments of a normalization: checked, and resolved for the shape of an input."""

import functools
import math
import numbers
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Axis = int | tuple[int, ...]

# A sixteenth of this is still a normal float32.
_SMALLEST_EPSILON = 1e-36


@dataclass(frozen=True)
class Equation:
    """A normalization without its tensors.

    Attributes:
        axes: Axes of the statistic, ascending, counted from the front.
        scale_axes: Axes of scale and offset, ascending, counted from the front.
        prefix: Number k of leading entries that a partial statistic takes, or None for all entries.
        epsilon: Added to the mean square, inside the root.
    """

    axes: tuple[int, ...]
    scale_axes: tuple[int, ...]
    prefix: int | None
    epsilon: float

    @classmethod
    @functools.lru_cache(maxsize=1024)  # eager calls repeat the same few shapes
    def for_shape(
        cls,
        shape: tuple[int | None, ...],
        axis: Axis,
        scale_axis: Axis | None,
        partial: float | None,
        epsilon: float,
    ) -> "Equation":
        """Resolves checked arguments for one input shape.

        Raises:
            ValueError: The shape lacks an axis, or has an unknown size where a known one is needed.
        """
        axes = _resolve("axis", axis, shape)
        scale_axes = axes if scale_axis is None else _resolve("scale_axis", scale_axis, shape)
        prefix = None
        if partial is not None:
            size = shape[axes[0]]
            if size is None:
                raise ValueError(
                    f"partial={partial} takes a part of axis {axis}, whose size is unknown in an input of "
                    f"shape {shape}. Give that axis a fixed size, or use partial=None."
                )
            prefix = prefix_size(size, partial)
            prefix = None if prefix == size else prefix
        return cls(axes, scale_axes, prefix, epsilon)

    def scale_shape(self, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """Returns the shape that scale and offset have for an input of shape `shape`."""
        return tuple(shape[a] for a in self.scale_axes)


def prefix_size(size: int, partial: float) -> int:
    """Returns k = ceil(size * partial), the number of entries in a partial statistic; at least 1.

    `partial` is read as the nearest fraction with a denominator of at most a million, because the rounding of binary
    floats must not add an entry: 10% of 30 is 3, though `30 * 0.1 > 3`.
    """
    return max(1, math.ceil(size * Fraction(partial).limit_denominator(10**6)))


# Names that other libraries give to our arguments.
_HABITS = {
    "eps": "epsilon",
    "elementwise_affine": "scale",
    "use_scale": "scale",
    "gamma": "scale",
    "weight": "scale",
    "use_bias": "center",
    "bias": "center",
    "beta": "offset",
    "gamma_initializer": "scale_initializer",
    "gamma_regularizer": "scale_regularizer",
    "gamma_constraint": "scale_constraint",
    "beta_initializer": "offset_initializer",
    "beta_regularizer": "offset_regularizer",
    "beta_constraint": "offset_constraint",
    "dim": "axis",
    "reduction_axes": "axis",
    "feature_axes": "scale_axis",
}
_WITHOUT_EQUIVALENT = {
    "rms_scaling": "RMS normalization is what this always computes",
    "normalized_shape": "sizes come from the input; name the axes with axis",
}


def refuse_habits(where: str, names: Iterable[str], own: Container[str]) -> None:
    """Raises a TypeError for the first name that another library uses for one of our `own` arguments."""
    for name in names:
        if _HABITS.get(name) in own:
            raise TypeError(f"{where} has no argument {name!r}. Use {_HABITS[name]!r} instead.")
        if name in _WITHOUT_EQUIVALENT:
            raise TypeError(f"{where} has no argument {name!r}: {_WITHOUT_EQUIVALENT[name]}. Drop it.")


def check_axis(name: str, axis: int | Sequence[int]) -> Axis:
    """Returns `axis` as a Python integer or a tuple of them, in the order given."""
    if _is_integer(axis):
        return int(axis)
    try:
        axes = tuple(axis)
    except TypeError:
        axes = ()
    if not axes or isinstance(axis, str) or not all(_is_integer(a) for a in axes):
        raise ValueError(
            f"{name} must be an integer or a non-empty sequence of integers, got {axis!r}. "
            f"Pass for example {name}=-1 or {name}=(1, 2)."
        )
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name} must name each axis once, got {axis!r}. Drop the repetition.")
    return tuple(int(a) for a in axes)


def check_epsilon(epsilon: float) -> float:
    """Returns `epsilon` as a Python float: finite, and large enough for float32."""
    if not _is_real(epsilon) or not _SMALLEST_EPSILON <= epsilon < math.inf:
        raise ValueError(
            f"epsilon must be a finite number of at least {_SMALLEST_EPSILON}, got {epsilon!r}. It keeps "
            "the gradient of a row of zeros finite; 1e-6 is usual."
        )
    return float(epsilon)


def check_partial(partial: float | None, axis: Axis) -> float | None:
    """Returns `partial` as a Python float in (0, 1], or None."""
    if partial is None:
        return None
    if not _is_real(partial) or not 0 < partial <= 1:
        raise ValueError(
            f"partial must be None or a number above 0 and at most 1, got {partial!r}. The paper uses "
            "0.0625; None takes the statistic over all entries."
        )
    if isinstance(axis, tuple) and len(axis) > 1:
        raise ValueError(
            f"partial={partial} needs a single axis, got axis={axis}: the first entries of several axes "
            "have no agreed order. Merge the axes with a reshape, or use partial=None."
        )
    return float(partial)


def check_flag(name: str, value: bool | None, allowed: tuple = (True, False)) -> bool | None:
    """Returns `value`, which must be one of the `allowed` constants itself."""
    if not any(value is a for a in allowed):
        choices = ", ".join(map(str, allowed))
        raise ValueError(f"{name} must be one of {choices}, got {value!r}. Pass one of them.")
    return value


def _resolve(name: str, axis: Axis, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    rank = len(shape)
    given = axis if isinstance(axis, tuple) else (axis,)
    for a in given:
        if not -rank <= a < rank:
            allowed = f"allowed are {-rank} to {rank - 1}" if rank else "a scalar has no axes"
            raise ValueError(
                f"{name}={axis} is out of range for an input of shape {shape}: {allowed}. "
                f"Choose another {name}, or check the input's rank."
            )
        if shape[a] == 0 and name == "axis":
            raise ValueError(
                f"axis={axis} has size 0 in an input of shape {shape}, and no entries have no mean. "
                "Choose an axis with entries."
            )
    axes = tuple(sorted(a % rank for a in given))
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}={axis} names an axis twice in an input of shape {shape}. Drop one of the two names.")
    return axes


def _is_integer(value) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def _is_real(value) -> bool:
    return isinstance(value, (numbers.Real, np.floating)) and not isinstance(value, (bool, np.bool_))
