"""Measures and reports invariances: the task `invariance`. It trains nothing and needs no data."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from nmt.errors import UserError
from rmsnorm_tf import RMSNormalization

from ..reporting.section import Claim, Section
from ..reporting.writer import summary_of, write_report

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
    """Returns the largest relative change of each map under each transformation.

    It is relative to the largest output of the map. The maximum is over all outputs of all draws.
    The cases, weights and vector of a draw are standard normal, and its factor is between 2 and 10.
    The bound is the largest possible rounding error: n eps / 2 for a sum of n terms. An output has
    a sum over the inputs and one over at most the units, and two outputs are compared.

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


# Table 1 of Zhang & Sennrich (2019), arXiv:1910.07467, after Ba et al. (2016), arXiv:1607.06450,
# table 1: whether a transformation leaves the output unchanged.
INVARIANCES: dict[str, dict[str, bool]] = {
    norm: dict(zip(TRANSFORMATIONS, invariant, strict=True))
    for norm, invariant in {
        "BatchNorm": (True, False, True, True, True, False),
        "WeightNorm": (True, False, True, False, False, False),
        "LayerNorm": (True, True, False, True, False, True),
        "RMSNorm": (True, False, False, True, False, True),
        "pRMSNorm": (True, False, False, True, False, True),
    }.items()
}

_DIFFERS = " (differs)"
_ANSWERS = {True: "yes", False: "no"}


def section(measured: dict[str, Any]) -> Section:
    """Returns the section of the values of `measure_invariance`."""
    bound = measured["bound"]
    changes = measured["changes"]
    transformations = list(next(iter(changes.values())))
    rows = []
    for norm, row in changes.items():
        cells = [_cell(change, bound, INVARIANCES[norm][name]) for name, change in row.items()]
        rows.append([norm, *cells])
    count = sum(map(len, changes.values()))
    wrong = sum(_DIFFERS in cell for cell in itertools.chain(*rows))
    text = [
        f"A linear map and its normalization are computed in float64: {measured['cases']} cases, "
        f"{measured['inputs']} inputs, {measured['units']} units, standard normal numbers, "
        f"{measured['draws']} draws. BatchNorm takes the statistics of these cases, pRMSNorm "
        "those of 6.25% of the units. There is no gain and no offset, and the norms' epsilon of "
        f"{measured['epsilon']:.0e} is too small to change the mean squares. The map has no bias. "
        "With a bias, which is not re-scaled with the rest, LayerNorm, RMSNorm and pRMSNorm are "
        "not invariant to any re-scaling. Some maps of the translation model have a bias.",
        "Re-centring adds one random vector to the weights of every unit, or to every case. "
        "Re-scaling multiplies by a number between 2 and 10: all weights, the weights of one "
        "unit, all cases or one case.",
        "A cell says whether the output stays the same, how much it changes at most relative to "
        f"the largest output, and the paper's answer. A change of at most {bound:.1e} counts as "
        "none: one rounding error for each term of the longest sums of an output, over the inputs "
        "and over the units.",
    ]
    claim = Claim(
        "Table 1: the invariances of each norm",
        f"{count} answers",
        f"{count - wrong} answers agree, with a negligible epsilon and no bias",
        "not borne out" if wrong else "borne out",
    )
    return Section(
        name="invariance",
        title="Invariances of the normalized output (Table 1)",
        text=text,
        columns=["", *transformations],
        rows=rows,
        data=measured,
        claims=[claim],
    )


def _cell(change: float, bound: float, published: bool) -> str:
    invariant = change <= bound
    mark = "" if invariant == published else _DIFFERS
    size = "" if invariant else f", {change:.1g}"  # what rounding leaves differs between machines
    return f"{_ANSWERS[invariant]}{size}; paper {_ANSWERS[published]}{mark}"


REPORT = Path(__file__).parents[2] / "runs" / "report"


def reproduce(data: str, so_far: bool) -> None:
    """Writes the report. `so_far` has no effect, because nothing is trained.

    Raises:
        UserError: Data is given.
    """
    if data:
        raise UserError(f"DATA={data}: the task invariance takes no data; leave DATA out")
    write_report(REPORT, "Invariances of normalization", [], {}, [section(measure_invariance())])
    print(summary_of(REPORT))
