"""The part of the entries that gives the statistic (Figure 3)."""

import math
from collections.abc import Sequence
from fractions import Fraction

from matplotlib.figure import Figure

from ...reporting.differences import draw_differences
from ...reporting.intervals import signed, spread, t_interval
from ...reporting.judging import Judged, Question, paired
from ...reporting.section import Section
from ..results import Result, by_row
from ..row import Row


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the rows with another part, or `None` without any."""
    rows = by_row(results)
    usual = {
        row.name: {each.seed: each for each in done}
        for row, done in rows.items()
        if row.section == "main"
    }
    changed = {row: done for row, done in rows.items() if row.section == "partial"}
    if not changed:
        return None
    gains = {
        row: paired(
            {each.seed: each for each in done},
            usual.get(row.step_size_of, {}),
            lambda each: each.bleu,
        )
        for row, done in changed.items()
    }
    sizes = _sizes(results[0])
    return Section(
        name="partial",
        title="The part of the entries that gives the statistic (Figure 3)",
        text=[
            "pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. BLEU is over all test "
            "sets; (sd) is the standard deviation over the seeds. Differences to "
            "RMSNorm are paired by seed, with 95% intervals. Nothing is judged. The paper shows "
            "Figure 3 as a plot, without a vector drawing, so its values were not read off."
        ],
        columns=[
            "",
            *(f"k of {size}" for size in sizes),
            "seeds",
            "best dev BLEU",
            "BLEU",
            "minus RMSNorm",
        ],
        rows=[
            [
                row.label,
                *(str(prefix(size, row.partial)) for size in sizes),
                str(len(done)),
                spread([each.dev for each in done]),
                spread([each.bleu for each in done]),
                signed(t_interval(gains[row]), 2) if len(gains[row]) > 1 else "",
            ]
            for row, done in changed.items()
        ],
        data={
            row.name: {"seeds": len(done), "differences": gains[row]}
            for row, done in changed.items()
        },
        plot=lambda figure: _plot(figure, gains),
    )


def _sizes(result: Result) -> list[int]:
    options = result.log["options"]
    return sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})


def prefix(size: int, p: float) -> int:
    """Returns k, the number of entries of the statistic. The arithmetic is exact: 10% of 30 is 3.

    >>> prefix(30, 0.1)
    3
    """
    return math.ceil(size * Fraction(str(p)))


def _plot(figure: Figure, gains: dict[Row, list[float]]) -> None:
    figure.set(size_inches=(9.5, 1.8 + 0.5 * len(gains)), layout_engine="constrained")
    drawn = [
        Judged(
            Question(
                "",
                "",
                "equal",
                "",
                pair=f"{row.label} minus RMSNorm",
                differences=found,
                unit=" BLEU",
            ),
            1.0 if len(found) > 1 else None,
        )
        for row, found in gains.items()
    ]
    draw_differences(axes := figure.subplots(), drawn)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
