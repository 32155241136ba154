"""Makes arrays that are the same on two machines, and summaries of arrays to compare them.

NumPy knows bfloat16 by name once ml_dtypes is imported.
"""

import functools
import json
from typing import Any

import ml_dtypes  # noqa: F401
import numpy as np

_NORM = slice(1)  # of a summary
_ENTRIES = slice(1, None)


def normal(
    shape: list[int], dtype: str, mean: float = 0.0, deviation: float = 1.0
) -> dict[str, Any]:
    """Describes an array of normally distributed numbers."""
    return {"shape": list(shape), "dtype": dtype, "mean": mean, "deviation": deviation}


def integers(shape: list[int], below: int) -> dict[str, Any]:
    """Describes an array of integers from 0 to `below` - 1."""
    return {"shape": list(shape), "dtype": "int32", "below": below}


def array(description: dict[str, Any], seed: int) -> np.ndarray:
    """Returns the array described; the same description and seed give the same one everywhere."""
    return _array(json.dumps(description, sort_keys=True), seed)


@functools.lru_cache(maxsize=4)  # the programs of one group have the same large inputs
def _array(text: str, seed: int) -> np.ndarray:
    description = json.loads(text)
    generator = np.random.default_rng(seed)
    shape = description["shape"]
    if "below" in description:
        return generator.integers(0, description["below"], shape, description["dtype"])
    x = generator.standard_normal(shape, np.float32)
    x *= description["deviation"]
    x += description["mean"]
    return x.astype(description["dtype"], copy=False)


def summary(x: np.ndarray) -> list[float]:
    """Returns the norm of an array and about 64 of its entries, evenly spaced."""
    flat = np.asarray(x).reshape(-1).astype(np.float32)
    return [float(np.linalg.norm(flat)), *flat[:: max(1, flat.size // 64)].tolist()]


def difference(expected: list[list[float]], found: list[list[float]]) -> float:
    """Returns the largest relative difference of norms or entries, given summaries of arrays."""
    largest = []
    for x, y in zip(map(np.array, expected), map(np.array, found), strict=True):
        for at in (_NORM, _ENTRIES):
            size = max(np.linalg.norm(x[at]), 1e-30)
            largest.append(np.linalg.norm(y[at] - x[at]) / size)
    return float(np.max(largest))
