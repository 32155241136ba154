"""Arrays that are the same on two machines, and summaries of arrays, which one machine can send to the other.

NumPy knows bfloat16 by name once ml_dtypes is imported.
"""

import functools
import json
from typing import Any

import ml_dtypes  # noqa: F401
import numpy as np

_ENTRIES = 64

Description = dict[str, Any]


def normal(shape: list[int], dtype: str, mean: float = 0.0, deviation: float = 1.0) -> Description:
    """Describes an array of normally distributed numbers."""
    return {"shape": list(shape), "dtype": dtype, "mean": mean, "deviation": deviation}


def integers(shape: list[int], below: int) -> Description:
    """Describes an array of integers from 0 to `below` - 1."""
    return {"shape": list(shape), "dtype": "int32", "below": below}


def array(description: Description, seed: int) -> np.ndarray:
    """Returns the array described; the same description and seed give the same one everywhere."""
    return _array(json.dumps(description, sort_keys=True), seed)


@functools.lru_cache(maxsize=4)  # the programs of one group have the same large inputs
def _array(text: str, seed: int) -> np.ndarray:
    description, generator = json.loads(text), np.random.default_rng(seed)
    shape = description["shape"]
    if "below" in description:
        return generator.integers(0, description["below"], shape, description["dtype"])
    x = generator.standard_normal(shape, np.float32)
    x *= description["deviation"]
    x += description["mean"]
    return x.astype(description["dtype"], copy=False)


def summary(x: np.ndarray) -> list[float]:
    """Returns the norm of an array and up to 64 of its entries, evenly spaced."""
    flat = np.asarray(x).reshape(-1)
    entries = flat[np.linspace(0, flat.size - 1, min(_ENTRIES, flat.size)).astype(int)]
    return [float(np.linalg.norm(flat.astype(np.float32))), *entries.astype(float).tolist()]


def difference(expected: list[list[float]], found: list[list[float]]) -> float:
    """Returns the largest relative difference between the arrays of two lists, given their summaries."""
    return float(np.max([_relative(*map(np.array, pair)) for pair in zip(expected, found, strict=True)]))


def _relative(expected, found):
    norm = abs(found[0] - expected[0]) / max(abs(expected[0]), 1e-30)
    return max(norm, np.linalg.norm(found[1:] - expected[1:]) / max(np.linalg.norm(expected[1:]), 1e-30))
