"""What both importers do with the arrays of a file."""

from collections.abc import Callable, Collection, Iterable, Mapping

import keras
import numpy as np


def fit(
    variables: Iterable[keras.Variable],
    arrays: Mapping[str, np.ndarray],
    name_of: Callable[[str, Collection[str]], str],
    is_transposed: Callable[[str], bool],
) -> tuple[list[np.ndarray], list[str]]:
    """Returns the values of variables, and what is wrong: which are missing, left over or of another shape.

    Args:
        variables: Those of our model.
        arrays: Those of a file, by name.
        name_of: Maps the path of a variable, and the names there are, to the name of its array.
        is_transposed: Whether the array of this name is the transpose of its variable.
    """
    values, wrong, left = [], [], set(arrays)
    for variable in variables:
        name = name_of(variable.path, arrays)
        left.discard(name)
        shape, found = list(variable.shape), arrays.get(name)
        if is_transposed(name):
            shape, found = shape[::-1], None if found is None else found.T
        if found is None:
            wrong.append(f"{name} {shape} is missing")
        elif found.shape != tuple(variable.shape):
            wrong.append(f"{name} has shape {list(arrays[name].shape)}, but the model needs {shape}")
        values.append(found)
    wrong += [
        f"{name} {list(arrays[name].shape)} is left over: the model has no such variable" for name in sorted(left)
    ]
    return values, wrong
