"""The report's section on invariances, compared with the paper's Table 1."""

import itertools
from typing import Any

from ..reporting.section import Claim, Section
from .measure import TRANSFORMATIONS

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
        f"A linear map and its normalization are computed in float64: {measured['cases']} cases, {measured['inputs']} "
        f"inputs, {measured['units']} units, standard normal numbers, {measured['draws']} draws. BatchNorm takes the "
        "statistics of these cases, pRMSNorm those of 6.25% of the units. There is no gain and no offset, and the "
        f"norms' epsilon of {measured['epsilon']:.0e} is too small to change the mean squares. The map has no bias. "
        "With a bias, which is not re-scaled with the rest, LayerNorm, RMSNorm and pRMSNorm are not invariant to any "
        "re-scaling. Some maps of the translation model have a bias.",
        "Re-centring adds one random vector to the weights of every unit, or to every case. Re-scaling multiplies by a "
        "number between 2 and 10: all weights, the weights of one unit, all cases or one case.",
        "A cell says whether the output stays the same, how much it changes at most relative to the largest output, "
        f"and the paper's answer. A change of at most {bound:.1e} counts as none: one rounding error for each term of "
        "the longest sums of an output, over the inputs and over the units.",
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
