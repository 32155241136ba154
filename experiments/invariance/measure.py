"""Measures how much a normalized linear map changes under the transformations of Ba et al. (2016),
Table 1.

The map is `N(x W)` without a bias: cases `[cases, inputs]` times weights `[inputs, units]`, with a
unit's weights in a column. `N` has no gain and no offset.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rmsnorm_tf import RMSNormalization

CASES = 48
INPUTS = 64
UNITS = 128
DRAWS = 20
# Half the relative precision of float64. Adding it changes no mean square, because all of them are
# above 1.
EPSILON = float(np.finfo(np.float64).eps) / 2

Map = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
Pair = tuple[np.ndarray, np.ndarray]


def _maps() -> dict[str, Map]:
    """Returns every normalized map by name: from cases and weights to outputs `[cases, units]`."""
    common = {"epsilon": EPSILON, "center": False, "scale": False, "dtype": "float64"}
    batch = keras.layers.BatchNormalization(**common)
    layer = keras.layers.LayerNormalization(**common)
    rms = RMSNormalization(**common)
    partial = RMSNormalization(partial=0.0625, **common)
    return {
        "BatchNorm": lambda x, w: batch(x @ w, training=True),
        "WeightNorm": lambda x, w: x @ tf.math.l2_normalize(w, axis=0, epsilon=EPSILON),
        "LayerNorm": lambda x, w: layer(x @ w),
        "RMSNorm": lambda x, w: rms(x @ w),
        "pRMSNorm": lambda x, w: partial(x @ w),
    }


def _at_first(values: np.ndarray, axis: int, factor: float) -> np.ndarray:
    """Returns a copy with the first condition (axis 0) or column (axis 1) scaled."""
    scaled = values.copy()
    scaled.swapaxes(0, axis)[0] *= factor
    return scaled


# Each maps cases, weights, a factor and a vector `[inputs]` to new cases and weights.
TRANSFORMATIONS: dict[str, Callable[..., Pair]] = {
    "weight matrix re-scaling": lambda x, w, factor, vector: (x, factor * w),
    "weight matrix re-centring": lambda x, w, factor, vector: (x, w + vector[:, np.newaxis]),
    "weight vector re-scaling": lambda x, w, factor, vector: (x, _at_first(w, 1, factor)),
    "dataset re-scaling": lambda x, w, factor, vector: (factor * x, w),
    "dataset re-centring": lambda x, w, factor, vector: (x + vector, w),
    "single case re-scaling": lambda x, w, factor, vector: (_at_first(x, 0, factor), w),
}


def measure_invariance() -> dict[str, Any]:
    """Returns the largest change of each map under each transformation, relative to its largest
    output.

    The maximum is over all outputs of all draws. The cases, weights and vector of a draw are
    standard normal, and its factor is between 2 and 10. The bound is the largest possible rounding
    error: n eps / 2 for a sum of n terms. An output has a sum over the inputs and one over at most
    the units, and two outputs are compared.

    >>> measured = measure_invariance()
    >>> measured["changes"]["LayerNorm"]["dataset re-scaling"] < measured["bound"]
    True
    """
    maps = _maps()
    changes = {norm: dict.fromkeys(TRANSFORMATIONS, 0.0) for norm in maps}
    for seed in range(DRAWS):
        generator = np.random.default_rng(seed)
        x = generator.standard_normal((CASES, INPUTS))
        w = generator.standard_normal((INPUTS, UNITS))
        factor = generator.uniform(2, 10)
        vector = generator.standard_normal(INPUTS)
        for norm, apply in maps.items():
            y = apply(tf.constant(x), tf.constant(w)).numpy()
            for name, transform in TRANSFORMATIONS.items():
                transformed = apply(*map(tf.constant, transform(x, w, factor, vector))).numpy()
                change = float(np.abs(transformed - y).max() / np.abs(y).max())
                changes[norm][name] = max(changes[norm][name], change)
    return {
        "cases": CASES,
        "inputs": INPUTS,
        "units": UNITS,
        "draws": DRAWS,
        "epsilon": EPSILON,
        "bound": (INPUTS + UNITS) * float(np.finfo(np.float64).eps),
        "changes": changes,
    }
