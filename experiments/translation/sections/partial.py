"""The part of the entries that gives the statistic (Figure 3)."""

import math
from collections.abc import Sequence
from fractions import Fraction

from matplotlib.figure import Figure

from ...reporting.differences import draw_differences
from ...reporting.intervals import signed, spread, t_interval
from ...reporting.judging import Judged, Question, paired
from ...reporting.section import Section
from ..condition import Condition
from ..results import Result, by_condition


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the conditions with another part, or `None` without any."""
    conditions = by_condition(results)
    usual = {
        condition.name: _by_seed(done)
        for condition, done in conditions.items()
        if condition.section == "main"
    }
    changed = {
        condition: done for condition, done in conditions.items() if condition.section == "partial"
    }
    if not changed:
        return None
    gains = {
        condition: paired(_by_seed(done), usual.get(condition.step_size_of, {}), float)
        for condition, done in changed.items()
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
            _cells(condition, done, sizes, gains[condition]) for condition, done in changed.items()
        ],
        data={
            condition.name: {"seeds": len(done), "differences": gains[condition]}
            for condition, done in changed.items()
        },
        plot=lambda figure: _plot(figure, gains),
    )


def _by_seed(done: Sequence[Result]) -> dict[int, float]:
    return {each.seed: each.bleu for each in done}


def _cells(
    condition: Condition, done: Sequence[Result], sizes: Sequence[int], gains: Sequence[float]
) -> list[str]:
    prefixes = [str(prefix(size, condition.partial)) for size in sizes]
    dev = spread([each.dev for each in done])
    bleu = spread(list(_by_seed(done).values()))
    gain = signed(t_interval(gains), 2) if len(gains) > 1 else ""
    return [condition.label, *prefixes, str(len(done)), dev, bleu, gain]


def _sizes(result: Result) -> list[int]:
    options = result.log["options"]
    return sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})


def prefix(size: int, p: float) -> int:
    """Returns k, the number of entries of the statistic. The arithmetic is exact: 10% of 30 is 3.

    >>> prefix(30, 0.1)
    3
    """
    return math.ceil(size * Fraction(str(p)))


def _plot(figure: Figure, gains: dict[Condition, list[float]]) -> None:
    figure.set(size_inches=(6, 1.8 + 0.65 * len(gains)), layout_engine="constrained")
    drawn = [
        Judged(
            Question(
                "",
                "",
                "equal",
                "",
                pair=f"{condition.label} minus RMSNorm",
                differences=found,
                unit=" BLEU",
            ),
            1.0 if len(found) > 1 else None,
        )
        for condition, found in gains.items()
    ]
    axes = figure.subplots()
    draw_differences(axes, drawn)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
