"""Variants of a kind: other epsilons, and a statistic of lower precision."""

from collections import Counter
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from ...reporting.intervals import spread
from ...reporting.section import Section
from ..results import Result, by_row
from ..row import Row
from ..row_styles import styles_of
from .forest import draw_forest
from .paired import RULE, first_test, gains_of, narrow, shown, told

Rows = dict[Row, list[Result]]


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the variants, or `None` without any."""
    rows = by_row(results)
    usual = {row.name: done for row, done in rows.items() if row.section == "main"}
    variants = {row: done for row, done in rows.items() if row.section == "variants"}
    if not variants:
        return None
    test = first_test(results)
    gains = {
        row: gains_of(done, usual.get(row.step_size_of, []), lambda result: result.test(test))
        for row, done in variants.items()
    }
    return Section(
        name="variants",
        title="Epsilon, and the precision of the statistic",
        text=[
            f"Rows of Table 2 with one change in the norm, and their BLEU on {test}. The other rows have an epsilon of "
            f"1e-5. A difference is paired by seed. A variant and its row count as equal if {RULE}; otherwise it "
            "is better or worse if the 95% interval excludes 0, without a correction for the number of variants.",
            _summary(gains),
        ],
        columns=["", "seeds", "best dev BLEU", f"{test} BLEU", "difference [95% interval]", "90% interval", "shown"],
        rows=[_cells(row, done, gains[row], test) for row, done in variants.items()],
        data={row.name: {"seeds": len(done), "differences": gains[row]} for row, done in variants.items()},
        plot=lambda figure: _plot(figure, gains, test),
    )


def _summary(gains: Mapping[Row, Sequence[float]]) -> str:
    """Says for how many variants the seeds show whether the change matters."""
    found = Counter(shown(each) for each in gains.values())
    matters = found["better"] + found["worse"]
    return (
        f"Of {len(gains)} changes, {matters} matter{'s' if matters == 1 else ''} and {found['no difference']} "
        f"make{'s' if found['no difference'] == 1 else ''} no difference; for the others, the seeds show neither."
    )


def _cells(row: Row, done: Sequence[Result], gains: Sequence[float], test: str) -> list[str]:
    scores = [spread([each.dev for each in done]), spread([each.test(test) for each in done])]
    return [row.label, str(len(done)), *scores, told(gains, 2), narrow(gains), shown(gains)]


def _plot(figure: Figure, gains: dict[Row, list[float]], test: str) -> None:
    figure.set(size_inches=(9, 1.8 + 0.4 * len(gains)), layout_engine="constrained")
    draw_forest(figure.subplots(), {row.label: (gains[row], style) for row, style in styles_of(gains).items()}, test)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
