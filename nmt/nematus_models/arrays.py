"""The arrays of a file, and their assignment to the variables of a model."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from ..errors import UserError

_NAMED = 10  # arrays that a message names


class Arrays(NamedTuple):
    """The arrays of a file, which are read one at a time."""

    path: Path  # the file, as messages name it
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]


class Rows(NamedTuple):
    """The rows of an array that a variable takes.

    Attributes:
        count: Rows of the array.
        order: Number of the row there for each row of the variable.
        last: Value of the last row of the variable instead; None takes that of the array.
    """

    count: int
    order: np.ndarray
    last: float | None = None

    def of(self, array: np.ndarray) -> np.ndarray:
        if self.last is None and np.array_equal(self.order, np.arange(len(array))):
            return array
        taken = array[self.order]
        if self.last is not None:
            taken[-1] = self.last
        return taken


def assign(
    variables: Iterable[keras.Variable],
    arrays: Arrays,
    name_of: Callable[[str, Collection[str]], str],
    is_transposed: Callable[[str], bool],
    advice: str,
    rows: Mapping[str, Rows] | None = None,
) -> None:
    """Assigns all variables from the arrays of a file, or none if an array is missing, left over or
    of another shape.

    Args:
        name_of: Maps the path of a variable, and the names there are, to the name of its array.
        is_transposed: Whether the array of this name is the transpose of its variable.
        advice: What to do where the arrays do not fit.
        rows: The rows that a variable of this path takes; by default, all in their order.
    """
    variables = list(variables)
    rows = rows or {}
    names = []
    wrong = []
    for variable in variables:
        name = name_of(variable.path, arrays.shapes)
        names.append(name)
        shape = list(variable.shape)
        if variable.path in rows:
            shape[0] = rows[variable.path].count
        if is_transposed(name):
            shape = shape[::-1]
        found = arrays.shapes.get(name)
        if found is None:
            wrong.append(f"{name} {shape} is missing")
        elif list(found) != shape:
            wrong.append(f"{name} has shape {list(found)}, but the model needs {shape}")
    left = sorted(set(arrays.shapes) - set(names))
    wrong += [f"{name} {list(arrays.shapes[name])} is left over" for name in left]
    if wrong:
        more = f", and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise UserError(
            f"{arrays.path} does not fit its options and vocabularies: "
            f"{'; '.join(wrong[:_NAMED])}{more}; {advice}"
        )
    for variable, name in zip(variables, names, strict=True):
        value = arrays.read(name)
        value = value.T if is_transposed(name) else value
        variable.assign(rows[variable.path].of(value) if variable.path in rows else value)
