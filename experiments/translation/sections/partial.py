"""The sweep over p of pRMSNorm (Figure 3)."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Claim, Section
from ...reporting.styles import KINDS
from ..results import Result
from .verdicts import not_shown

# Rows of Table 2 that are points of the sweep too.
_OF_TABLE2 = {"prmsnorm": 0.0625, "rmsnorm": 1.0}
_CLAIMED = 0.0625  # the p of the paper's pRMSNorm
_GAP = 5.0  # the axis is broken where neighbouring values differ by more BLEU than this


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the sweep with the first seed, or `None` if no point of it is done."""
    first = [result for result in results if result.seed == 1]
    if not any(result.row.partial for result in first):
        return None
    options, tests = first[0].log["options"], list(first[0].log["tests"])
    sizes = sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})
    points = [
        {"row": each.row.name, "p": p, "dev": each.dev}
        | {test: each.test(test) for test in tests}
        | {"seeds": [other.test(tests[0]) for other in results if other.row == each.row]}
        for each in first
        if (p := each.row.partial or _OF_TABLE2.get(each.row.name))
    ]
    points.sort(key=lambda point: point["p"])
    bleu = [point[tests[0]] for point in points]
    return Section(
        name="partial",
        title="The part of the entries that gives the statistic (Figure 3)",
        text=[
            "pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. The model's norms are over "
            f"{', '.join(map(str, sizes))} entries; the table has k for each. Two p with the same k are the same norm. "
            f"Up to p = 1/{sizes[-1]} every norm has k = 1: it divides by the size of one entry, and where that is "
            "near 0, the others become large.",
            f"The table has seed 1. Over these p the BLEU on {tests[0]} lies between {min(bleu):.1f} and "
            f"{max(bleu):.1f}.{_on_chance(points)} The paper shows Figure 3 as a plot; its values were not read off.",
        ],
        columns=["p", *(f"k of {size}" for size in sizes), "dev BLEU", *(f"{test} BLEU" for test in tests)],
        rows=[
            [
                f"{point['p']:.2%}",
                *(str(_prefix(size, point["p"])) for size in sizes),
                *(f"{point[name]:.1f}" for name in ("dev", *tests)),
            ]
            for point in points
        ],
        data=points,
        plot=lambda figure: _plot(figure, points, tests[0], sizes),
        claims=_claims(points, tests[0]),
    )


def _claims(points: Sequence[dict[str, Any]], test: str) -> list[Claim]:
    """Judges the paper's claim on small p, if two points with p of at least `_CLAIMED` are done."""
    shown = [point for point in points if point["p"] >= _CLAIMED]
    if len(shown) < 2:
        return []
    told = ", ".join(f"{point[test]:.1f} at {point['p']:.4g}" for point in shown)
    return [
        Claim(
            f"Figure 3: a statistic from {_CLAIMED:.2%} of the entries or more loses no quality",
            "a plot; values not read off",
            f"BLEU by p: {told}; seed 1",
            not_shown(1),
        )
    ]


def _prefix(size: int, p: float) -> int:
    """Returns k, the number of entries of the statistic. The arithmetic is exact: 10% of 30 is 3."""
    return math.ceil(size * Fraction(str(p)))


def _on_chance(points: Sequence[dict[str, Any]]) -> str:
    """Describes the range of the seeds at each p that has several, to compare with the differences between p."""
    return "".join(
        f" The {len(seeds)} seeds of p = {point['p']:.4g} alone lie between {min(seeds):.1f} and {max(seeds):.1f}."
        for point in points
        if len(seeds := point["seeds"]) > 1
    )


def _plot(figure: Figure, points: list[dict[str, Any]], test: str, sizes: list[int]) -> None:
    values = sorted(seed for point in points for seed in point["seeds"])
    broken = max(itertools.pairwise(values), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    split = broken[1] - broken[0] > _GAP
    figure.set(size_inches=(9, 5), layout_engine="constrained")
    heights = [4, 1][: 1 + split]
    all_axes = figure.subplots(1 + split, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes in all_axes:
        _draw(axes, points, test, sizes)
    if split:
        all_axes[0].set_ylim(broken[1] - 0.5, values[-1] + 0.5)
        all_axes[1].set_ylim(values[0] - 1, broken[0] + 1)
        _break(*all_axes)
    all_axes[-1].set_xlabel(f"p, and below it k of {', of '.join(map(str, sizes))} entries")
    all_axes[0].set_ylabel(f"BLEU on {test}")
    _shade(all_axes, sizes[-1])
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)


def _draw(axes: Axes, points: list[dict[str, Any]], test: str, sizes: list[int]) -> None:
    """Draws the first seed as a line, and the others as points."""
    x, style = [point["p"] for point in points], KINDS["prmsnorm"]
    axes.plot(x, [point[test] for point in points], label="seed 1", **style.line())
    others = [(point["p"], seed) for point in points for seed in point["seeds"][1:]]
    if others:
        axes.plot(*zip(*others, strict=True), "_", color="black", markersize=12, label="other seeds")
    axes.set_xscale("log")
    axes.set_xticks(x, [_tick(p, sizes) for p in x], fontsize=8)
    axes.minorticks_off()


def _break(upper: Axes, lower: Axes) -> None:
    """Marks where the axis between two panels is broken."""
    upper.spines.bottom.set_visible(False)
    lower.spines.top.set_visible(False)
    upper.tick_params(bottom=False, labelbottom=False)
    marks = {"marker": [(-1, -0.5), (1, 0.5)], "markersize": 9, "linestyle": "none", "color": "black", "clip_on": False}
    upper.plot([0, 1], [0, 0], transform=upper.transAxes, **marks)
    lower.plot([0, 1], [1, 1], transform=lower.transAxes, **marks)


def _shade(all_axes: Sequence[Axes], size: int) -> None:
    """Shades the p at which every norm has k = 1, if a point is there."""
    start, stop = all_axes[0].get_xlim()
    for axes in all_axes:
        if min(axes.get_xticks()) <= 1 / size:
            axes.axvspan(start, 1 / size, color="#E8E8E8", zorder=0, label=f"p up to 1/{size}: k = 1 in every norm")
            axes.set_xlim(start, stop)


def _tick(p: float, sizes: Sequence[int]) -> str:
    return "\n".join([f"{p:.4g}", *(str(_prefix(size, p)) for size in sizes)])
