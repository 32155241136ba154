"""Shows the differences that judge claims: a table, and a picture with margins."""

from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .intervals import t_interval
from .judging import COLUMNS, Judged
from .section import Section

# Where the parts of a row are, from its middle downwards.
_LABELS = -0.22
_SEEDS = -0.02
_INTERVALS = 0.26
# In a unit; losses, errors and bounds are better if they are lower.
_HIGHER_IS_BETTER = ("BLEU", "chrF", "R@")


def differences_section(
    judged: Sequence[Judged], text: str, title: str = "Differences between kinds, paired by seed"
) -> Section | None:
    """Returns the section with the claims, after a paragraph, or `None` without any."""
    if not judged:
        return None
    return Section(
        name="differences",
        title=title,
        text=[text],
        columns=list(COLUMNS),
        rows=[each.cells for each in judged],
        data=[
            {
                "claim": each.question.claim,
                "pair": each.question.pair,
                "differences": each.question.differences,
                "holm": each.p,
                "ours": each.ours,
                "verdict": each.verdict,
            }
            for each in judged
        ],
        plot=lambda figure: _plot(figure, judged),
        claims=[each.claim for each in judged],
    )


def _plot(figure: Figure, judged: Sequence[Judged]) -> None:
    """Draws the differences of each unit on an axis of its own.

    If the main measure has some, only those are drawn.
    """
    once: dict[tuple[str, str], Judged] = {}
    for each in [each for each in judged if not each.question.measure] or judged:
        key = each.question.pair, each.question.unit
        if key not in once or each.question.margin:  # of several claims, one with a margin to draw
            once[key] = each
    groups = [
        list(found) for _, found in groupby(once.values(), key=lambda each: each.question.unit)
    ]
    heights = [len(found) + 1.2 for found in groups]
    figure.set(size_inches=(6, 0.65 * sum(heights) + 0.9), layout_engine="constrained")
    all_axes = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, found in zip(all_axes, groups, strict=True):
        draw_differences(axes, found)
    legend = {}
    for axes in all_axes:
        handles, labels = axes.get_legend_handles_labels()
        legend |= dict(zip(labels, handles, strict=True))
    figure.legend(
        legend.values(), legend.keys(), loc="outside lower center", ncols=2, frameon=False
    )


def draw_differences(axes: Axes, judged: Sequence[Judged]) -> None:
    """Draws each seed, the 95% interval, the 90% interval, and the margin of each difference."""
    for at, each in enumerate(judged):
        axes.vlines(0, at - 0.12, at + 0.45, color="black", linewidth=0.6)  # below the label
        asked = each.question
        known = each.interval is not None
        if asked.margin:
            axes.fill_betweenx(
                [at - 0.45, at + 0.45], -asked.margin, asked.margin, color="#E4E4E4", zorder=0
            )
        if known:
            axes.plot(
                asked.differences,
                [at + _SEEDS] * len(asked.differences),
                "|",
                color="black",
                markersize=9,
            )
            axes.hlines(at + _INTERVALS, *each.interval[1:], color="black", linewidth=1)
            wide = t_interval(asked.differences, 0.9)
            axes.hlines(at + _INTERVALS, *wide[1:], color="black", linewidth=4)
            middle = each.interval.middle
            axes.plot(middle, at + _INTERVALS, "o", color="white", markeredgecolor="black")
    if any(each.question.margin for each in judged):
        axes.fill_betweenx([], [], [], color="#E4E4E4", label="margin")
    axes.plot([], [], "|", color="black", markersize=9, label="each seed")
    axes.plot([], [], color="black", linewidth=1, label="95% interval")
    axes.plot([], [], color="black", linewidth=4, label="90% interval")
    unit = judged[0].question.unit
    seconds = {each.question.pair.partition(" minus ")[2].partition(",")[0] for each in judged}
    second = seconds.pop() if len(seconds) == 1 else "the one after “minus”"
    sides = (
        ("better", "worse")
        if any(each in unit for each in _HIGHER_IS_BETTER)
        else ("worse", "better")
    )
    axes.text(0, 1.02, f"← {second} {sides[0]}", transform=axes.transAxes)
    axes.text(1, 1.02, f"{second} {sides[1]} →", transform=axes.transAxes, ha="right")
    axes.set(xlabel=f"difference,{unit}", ylim=(len(judged) - 0.5, -0.5))
    axes.set_yticks([])
    for at, each in enumerate(judged):
        axes.text(0.01, at + _LABELS, each.question.pair, transform=axes.get_yaxis_transform())
