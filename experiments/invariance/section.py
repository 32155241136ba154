"""What leaves a normalized map as it is, computed, beside the paper's Table 1."""

import math
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..reporting.section import Section
from .table1 import INVARIANCES

_ANSWERS = {True: "yes", False: "no"}


def section(measured: dict[str, Any]) -> Section:
    """Returns the section of what `experiments.invariance.measure` returned."""
    bound, changes = measured["bound"], measured["changes"]
    transformations = list(next(iter(changes.values())))
    wrong = _disagreements(measured)
    small = [change for row in changes.values() for change in row.values() if change <= bound]
    large = [change for row in changes.values() for change in row.values() if change > bound]
    text = [
        f"A linear map and its normalization are computed in float64: {measured['cases']} cases, {measured['inputs']} "
        f"inputs, {measured['units']} units, standard normal numbers, {measured['draws']} draws. The map has no bias: "
        "with one, which is not re-scaled with the rest, LayerNorm, RMSNorm and pRMSNorm would be invariant to no "
        "re-scaling; some of the translation model have one. Gain and offset are left out, and the norms' epsilon of "
        f"{measured['epsilon']:.0e} vanishes in the mean squares. BatchNorm takes the statistics of "
        "these cases, pRMSNorm those of 6.25% of the units. Re-centring adds one random vector: to the weight vectors "
        "of all units, or to all cases. Re-scaling multiplies by one number between 2 and 10: all weights, one unit's "
        "weights, all cases or one case.",
        "A cell tells whether the output stays as it is, how far it moves at most, relative to the largest output, and "
        f"what the paper says. Invariant is what moves by less than {bound:.1e}: one rounding for each term of the "
        "longest sums in an output, over the inputs and over the units. " + _gap(small, large),
        f"All {len(small) + len(large)} cells agree with the paper's Table 1."
        if not wrong
        else f"Against the paper's Table 1 are: {'; '.join(f'{norm} under {name}' for norm, name in wrong)}.",
    ]
    rows = [
        [norm] + [_cell(change, bound, INVARIANCES[norm][name]) for name, change in row.items()]
        for norm, row in changes.items()
    ]
    return Section(
        name="invariance",
        title="What the normalized output is invariant to (Table 1)",
        text=text,
        columns=["", *transformations],
        rows=rows,
        data=measured,
        plot=lambda figure: _plot(figure, measured),
    )


def _disagreements(measured: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (norm, name)
        for norm, row in measured["changes"].items()
        for name, change in row.items()
        if (change <= measured["bound"]) != INVARIANCES[norm][name]
    ]


def _gap(small: list[float], large: list[float]) -> str:
    """Says how far from the bound the cells are, where there are some on both sides."""
    if not (small and large):
        return ""
    return f"What is below moves by at most {max(small):.1e}, what is above by at least {min(large):.2g}."


def _cell(change: float, bound: float, published: bool) -> str:
    invariant = change <= bound
    mark = "" if invariant == published else " (differs)"
    return f"{_ANSWERS[invariant]}, {change:.1g}; paper {_ANSWERS[published]}{mark}"


def _plot(figure: Figure, measured: dict[str, Any]) -> None:
    changes = measured["changes"]
    transformations = list(next(iter(changes.values())))
    # A change of exactly 0 has no logarithm; it is shown as the smallest relative one of float64.
    logs = [[math.log10(max(change, 1e-16)) for change in row.values()] for row in changes.values()]
    figure.set(size_inches=(9, 4.6), layout_engine="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(logs, cmap=matplotlib.colormaps["RdYlBu_r"], vmin=-16, vmax=1, aspect="auto")
    for y, (norm, row) in enumerate(changes.items()):
        for x, (name, change) in enumerate(row.items()):
            middling = -12 < logs[y][x] < -4
            text = f"{change:.1g}\npaper: {_ANSWERS[INVARIANCES[norm][name]]}"
            axes.text(x, y, text, ha="center", va="center", color="black" if middling else "white", fontsize=9)
            if (norm, name) in _disagreements(measured):
                axes.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, fill=False, linewidth=3))
    axes.set_xticks(range(len(transformations)), [_in_two_lines(name) for name in transformations], fontsize=9)
    axes.set_yticks(range(len(changes)), list(changes))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, pad=0.07, label="largest relative change, as a power of ten")
    bar.ax.axhline(math.log10(measured["bound"]), color="black")
    bar.ax.text(-0.2, math.log10(measured["bound"]), "bound", ha="right", va="center", fontsize=9)


def _in_two_lines(name: str) -> str:
    return "\n".join(name.rsplit(" ", 1))
