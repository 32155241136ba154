"""Matches the arrays of a file with the variables that take them."""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from ..errors import UserError
from ..storage.checkpoints import Stored

_NAMED = 10  # arrays that a message names


class Arrays(NamedTuple):
    """Lists the arrays of a file, which are read one at a time."""

    path: Path  # the file, as messages name it
    shapes: dict[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]  # of any type of real numbers


class Rows(NamedTuple):
    """Selects the rows of an array that a variable takes.

    Attributes:
        count: Rows of the array.
        order: Number of the row there for each row of the variable.
        last: Value of the last row of the variable instead; None takes that of the array.
    """

    count: int
    order: np.ndarray
    last: float | None = None


def match(
    variables: Iterable[keras.Variable],
    arrays: Arrays,
    name_of: Callable[[str, Collection[str]], str],
    transposed: tuple[str, ...],
    advice: str,
    rows: Mapping[str, Rows],
) -> list[Stored]:
    """Returns the values of variables for a checkpoint. Each is read when it is written.

    Args:
        name_of: Maps the path of a variable, and the names there are, to the name of its array.
        transposed: Ends of the names of arrays that are the transpose of their variable.
        advice: What to do where the arrays do not fit.
        rows: The rows that a variable of this path takes; others take all in their order.

    Raises:
        UserError: An array is missing, left over, or of another shape than its variable. A vector
            may have the shape `[1, n]`.
    """
    found = []
    wrong = []
    left = dict(arrays.shapes)
    for variable in variables:
        name = name_of(variable.path, arrays.shapes)
        taken = rows.get(variable.path)
        shape = list(variable.shape)
        if taken is not None:
            shape[0] = taken.count
        is_transposed = name.endswith(transposed)
        if is_transposed:
            shape.reverse()
        actual = list(arrays.shapes.get(name, ()))
        left.pop(name, None)
        if name not in arrays.shapes:
            wrong.append(f"{name} {shape} is missing")
        elif actual not in (shape, [1, *shape]):
            wrong.append(f"{name} has shape {actual}, but the model needs {shape}")
        read = functools.partial(_read, arrays, name, shape, is_transposed, taken)
        found.append(Stored(variable.path, read))
    wrong += [f"{name} {list(left[name])} is left over" for name in sorted(left)]
    if wrong:
        more = f", and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise UserError(
            f"{arrays.path} does not fit its options and vocabularies: "
            f"{'; '.join(wrong[:_NAMED])}{more}; {advice}"
        )
    return found


def _read(
    arrays: Arrays, name: str, shape: list[int], is_transposed: bool, rows: Rows | None
) -> np.ndarray:
    value = arrays.read(name).reshape(shape)
    value = value.T if is_transposed else value
    if rows is not None and not np.array_equal(rows.order, np.arange(len(value))):
        value = value[rows.order]
    value = value.astype(np.float32, copy=rows is not None and rows.last is not None)
    if not np.isfinite(value).all():
        raise UserError(f"{arrays.path} has values in {name} that are not finite; copy it again")
    if rows is not None and rows.last is not None:
        value[-1] = rows.last
    return value
