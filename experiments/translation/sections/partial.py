"""The sweep over p of pRMSNorm (Figure 3)."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ...reporting.styles import KINDS, OTHERS
from ..results import Result

# Rows of Table 2 that are points of the sweep too.
_OF_TABLE2 = {"prmsnorm": 0.0625, "rmsnorm": 1.0}
_GAP = 5.0  # the axis is broken where neighbouring values differ by more BLEU than this


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the sweep with the first seed, or `None` if no point of it is done."""
    first = [result for result in results if result.seed == 1]
    if not any(result.row.partial for result in first):
        return None
    options, tests = first[0].log["options"], list(first[0].log["tests"])
    sizes = sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})
    points = [
        {"row": each.row.name, "p": p, "dev": each.dev} | {test: each.test(test) for test in tests}
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
            f"One seed. Over these p the BLEU on {tests[0]} lies between {min(bleu):.1f} and {max(bleu):.1f}."
            f"{_on_chance(results, tests[0])} The paper shows Figure 3 as a plot; its values were not read off.",
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
        plot=lambda figure: _plot(figure, points, ["dev", *tests], sizes),
    )


def _prefix(size: int, p: float) -> int:
    """Returns k, the number of entries of the statistic. The arithmetic is exact: 10% of 30 is 3."""
    return math.ceil(size * Fraction(str(p)))


def _on_chance(results: Sequence[Result], test: str) -> str:
    """Describes the range of the seeds at p = 100%, to compare with the differences between points."""
    seeds = [each.test(test) for each in results if each.row.name == "rmsnorm"]
    if len(seeds) < 2:
        return ""
    return f" The {len(seeds)} seeds of p = 100% alone lie between {min(seeds):.1f} and {max(seeds):.1f}."


def _plot(figure: Figure, points: list[dict[str, Any]], names: list[str], sizes: list[int]) -> None:
    values = sorted(point[name] for point in points for name in names)
    broken = max(itertools.pairwise(values), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    split = broken[1] - broken[0] > _GAP
    figure.set(size_inches=(9, 5), layout_engine="constrained")
    all_axes = figure.subplots(2 if split else 1, 1, sharex=True, squeeze=False, height_ratios=[4, 1][: 1 + split])[
        :, 0
    ]
    x = [point["p"] for point in points]
    styles = (KINDS["prmsnorm"], *OTHERS)
    for axes in all_axes:
        for name, style in zip(names, styles, strict=False):
            axes.plot(x, [point[name] for point in points], label=f"{name} BLEU", **style.line())
        axes.set_xscale("log")
        axes.set_xticks(x, [_tick(p, sizes) for p in x], fontsize=8)
        axes.minorticks_off()
    if split:
        all_axes[0].set_ylim(broken[1] - 0.5, values[-1] + 0.5)
        all_axes[1].set_ylim(values[0] - 1, broken[0] + 1)
        _break(*all_axes)
    all_axes[-1].set_xlabel(f"p, and below it k of {', of '.join(map(str, sizes))} entries")
    all_axes[0].set_ylabel("BLEU, one seed")
    _shade(all_axes, sizes[-1])
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)


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
