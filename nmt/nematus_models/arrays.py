"""What both importers do with the arrays of a file."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import keras
import numpy as np

from ..errors import UserError

_NAMED = 10  # arrays that a message names


def assign(
    variables: Iterable[keras.Variable],
    arrays: Mapping[str, np.ndarray],
    name_of: Callable[[str, Collection[str]], str],
    is_transposed: Callable[[str], bool],
    path: Path,
    advice: str,
) -> None:
    """Assigns all variables from the arrays of a file, or none if an array is missing, left over or
    of another shape.

    Args:
        name_of: Maps the path of a variable, and the names there are, to the name of its array.
        is_transposed: Whether the array of this name is the transpose of its variable.
        advice: What to do where the arrays do not fit.
    """
    values = []
    wrong = []
    left = set(arrays)
    for variable in variables:
        name = name_of(variable.path, arrays)
        left.discard(name)
        shape = list(variable.shape)
        found = arrays.get(name)
        if is_transposed(name):
            shape = shape[::-1]
            found = None if found is None else found.T
        if found is None:
            wrong.append(f"{name} {shape} is missing")
        elif found.shape != tuple(variable.shape):
            wrong.append(
                f"{name} has shape {list(arrays[name].shape)}, but the model needs {shape}"
            )
        values.append((variable, found))
    wrong += [f"{name} {list(arrays[name].shape)} is left over" for name in sorted(left)]
    if wrong:
        more = f", and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise UserError(
            f"{path} does not fit its options and vocabularies: {'; '.join(wrong[:_NAMED])}{more}; {advice}"
        )
    for variable, value in values:
        variable.assign(value)
