"""Variants of a kind: other epsilons, a statistic of lower precision, and parts of the entries (Figure 3)."""

import math
from collections.abc import Sequence
from fractions import Fraction

from matplotlib.figure import Figure

from ...reporting.differences import draw_differences
from ...reporting.intervals import signed, spread, t_interval
from ...reporting.judging import Judged, Question
from ...reporting.section import Section
from ..results import Result, by_row
from ..row import Row

_TEXT = (
    "Rows of Table 2 with one change in the norm, after 600 updates. BLEU is over all test sets, weighted by "
    "sentences; (sd) is the standard deviation over the seeds. Differences to the row without the change are paired by "
    "seed, with 95% intervals. After so few updates nothing is judged."
)


def sections(results: Sequence[Result]) -> list[Section]:
    """Returns the sections of the parts of the entries, and of the other variants, as far as there are some."""
    partial = _section(
        results,
        "partial",
        "The part of the entries that gives the statistic (Figure 3)",
        [
            f"pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. {_TEXT} The paper shows "
            "Figure 3 as a plot, without a vector drawing, so its values were not read off."
        ],
    )
    variants = _section(results, "variants", "Epsilon, and the precision of the statistic", [_TEXT])
    return [each for each in (partial, variants) if each]


def _section(results: Sequence[Result], name: str, title: str, text: list[str]) -> Section | None:
    rows = by_row(results)
    usual = {row.name: {each.seed: each for each in done} for row, done in rows.items() if row.section == "main"}
    changed = {row: done for row, done in rows.items() if row.section == name}
    if not changed:
        return None
    gains = {
        row: [each.bleu - others[each.seed].bleu for each in done if each.seed in others]
        for row, done in changed.items()
        for others in [usual.get(row.step_size_of, {})]
    }
    sizes = _sizes(results[0]) if name == "partial" else []
    return Section(
        name=name,
        title=title,
        text=text,
        columns=[
            "",
            *(f"k of {size}" for size in sizes),
            "seeds",
            "best dev BLEU",
            "BLEU",
            "difference [95% interval]",
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
        data={row.name: {"seeds": len(done), "differences": gains[row]} for row, done in changed.items()},
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
        Judged(Question("", "", row.label, "equal", found, " BLEU"), 1.0 if len(found) > 1 else None)
        for row, found in gains.items()
    ]
    draw_differences(axes := figure.subplots(), drawn)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
