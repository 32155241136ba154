"""The sweep over p of pRMSNorm (Figure 3)."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.intervals import spread, t_interval
from ...reporting.section import Claim, Section
from ...reporting.styles import KINDS
from ..results import Result, by_row
from .paired import MARGIN, RULE, first_test, gains_of, narrow, shown, told
from .verdicts import not_shown

# Rows of Table 2 that are points of the sweep too.
_OF_TABLE2 = {"prmsnorm": 0.0625, "rmsnorm": 1.0}
_CLAIMED = 0.0625  # the p of the paper's pRMSNorm
_GAP = 5.0  # the axis is broken where neighbouring values differ by more BLEU than this

Points = dict[float, list[Result]]  # the results at each p


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the sweep, or `None` if no point of it is done."""
    if not any(result.row.partial for result in results):
        return None
    options, tests = results[0].log["options"], list(results[0].log["tests"])
    sizes = sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})
    by_p = {row.partial or _OF_TABLE2.get(row.name): done for row, done in by_row(results).items()}
    points = {p: by_p[p] for p in sorted(p for p in by_p if p)}
    gains = {p: _gains(done, points.get(1.0, []), tests[0]) for p, done in points.items() if p < 1}
    return Section(
        name="partial",
        title="The part of the entries that gives the statistic (Figure 3)",
        text=[
            "pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. The model's norms are over "
            f"{', '.join(map(str, sizes))} entries; the table has k for each. Two p with the same k are the same norm. "
            f"Up to p = 1/{sizes[-1]} every norm has k = 1: it divides by the size of one entry, and where that is "
            "near 0, the others become large.",
            f"BLEU is the mean of the seeds with the standard deviation (sd). The difference to RMSNorm on {tests[0]} "
            f"is paired by seed, with its 95% interval. Two p count as equal if {RULE}, and otherwise as different if "
            "the 95% interval excludes 0. The claim is about losses alone: p loses no quality if the 90% interval lies "
            f"above -{MARGIN} BLEU, and loses some if it lies below. The paper shows Figure 3 as a plot, without a "
            "vector drawing, so its values were not read off.",
        ],
        columns=[
            *("p", *(f"k of {size}" for size in sizes), "seeds", "dev BLEU", *(f"{test} BLEU" for test in tests)),
            *("minus RMSNorm", "90% interval", "shown"),
        ],
        rows=[
            [
                *(f"{p:.2%}", *(str(_prefix(size, p)) for size in sizes), str(len(done))),
                spread([each.dev for each in done]),
                *(spread(_scores(done, test)) for test in tests),
                *((told(gains[p]), narrow(gains[p]), shown(gains[p])) if p < 1 else ("", "", "")),
            ]
            for p, done in points.items()
        ],
        data=[
            {"row": done[0].row.name, "p": p, **{test: _scores(done, test) for test in tests}}
            for p, done in points.items()
        ],
        plot=lambda figure: _plot(figure, points, sizes),
        claims=_claims(gains),
    )


def _gains(done: Sequence[Result], whole: Sequence[Result], test: str) -> list[float]:
    return gains_of(done, whole, lambda result: result.test(test))


def _scores(done: Sequence[Result], test: str) -> list[float]:
    return [each.test(test) for each in done]


def _claims(gains: dict[float, list[float]]) -> list[Claim]:
    """Judges the paper's claim by the points with p of at least `_CLAIMED` that share a seed with RMSNorm."""
    judged = {p: found for p, found in gains.items() if p >= _CLAIMED and found}
    if not judged:
        return []
    return [
        Claim(
            f"Figure 3: a statistic from {_CLAIMED:.2%} of the entries or more loses no quality",
            "a plot; values not read off",
            f"BLEU minus RMSNorm's: {'; '.join(f'{told(found)} at {p:.4g}' for p, found in judged.items())}",
            _verdict(list(judged.values())),
        )
    ]


def _verdict(judged: Sequence[Sequence[float]]) -> str:
    intervals = [t_interval(gains, 0.9) for gains in judged if len(gains) > 1]
    if any(found.high < -MARGIN for found in intervals):
        return "not borne out"
    if len(intervals) == len(judged) and all(found.low >= -MARGIN for found in intervals):
        return "borne out"
    return not_shown(min(map(len, judged)))


def _prefix(size: int, p: float) -> int:
    """Returns k, the number of entries of the statistic. The arithmetic is exact: 10% of 30 is 3."""
    return math.ceil(size * Fraction(str(p)))


def _plot(figure: Figure, points: Points, sizes: list[int]) -> None:
    test = first_test(next(iter(points.values())))
    scores = {p: _scores(done, test) for p, done in points.items()}
    values = sorted(seed for seeds in scores.values() for seed in seeds)
    broken = max(itertools.pairwise(values), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    split = broken[1] - broken[0] > _GAP
    figure.set(size_inches=(9, 5), layout_engine="constrained")
    heights = [4, 1][: 1 + split]
    all_axes = figure.subplots(1 + split, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes in all_axes:
        _draw(axes, scores, sizes)
    if split:
        all_axes[0].set_ylim(broken[1] - 0.5, values[-1] + 0.5)
        all_axes[1].set_ylim(values[0] - 1, broken[0] + 1)
        _break(*all_axes)
    all_axes[-1].set_xlabel(f"p, and below it k of {', of '.join(map(str, sizes))} entries")
    all_axes[0].set_ylabel(f"BLEU on {test}")
    _shade(all_axes, sizes[-1])
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)


def _draw(axes: Axes, scores: dict[float, list[float]], sizes: list[int]) -> None:
    """Draws the mean of the seeds as a line, and every seed as a mark."""
    axes.plot(list(scores), list(map(mean, scores.values())), label="mean", **KINDS["prmsnorm"].line())
    seeds = [(p, seed) for p, found in scores.items() for seed in found]
    axes.plot(*zip(*seeds, strict=True), "_", color="black", markersize=12, label="each seed")
    axes.set_xscale("log")
    axes.set_xticks(list(scores), [_tick(p, sizes) for p in scores], fontsize=8)
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
