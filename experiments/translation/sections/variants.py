"""Variants of a kind: other epsilons, and a statistic of lower precision."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from ...reporting.intervals import signed, spread, t_interval
from ...reporting.section import Section
from ..results import Result, by_row
from ..row import Row
from ..row_styles import styles_of
from .verdicts import not_shown

MARGIN = 0.5  # BLEU; a variant counts as equal if the 90% interval of its difference lies within

Rows = dict[Row, list[Result]]


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the variants, or `None` without any."""
    rows = by_row(results)
    usual = {row.name: done for row, done in rows.items() if row.section == "main"}
    variants = {row: done for row, done in rows.items() if row.section == "variants"}
    if not variants:
        return None
    test = next(iter(results[0].log["tests"]))
    gains = {row: _differences(done, usual.get(row.step_size_of, []), test) for row, done in variants.items()}
    return Section(
        name="variants",
        title="Epsilon, and the precision of the statistic",
        text=[
            f"Rows of Table 2 with one change in the norm, and their BLEU on {test}. The other rows have an epsilon of "
            "1e-5. A difference is paired by seed. It counts as none if its 90% interval lies between "
            f"-{MARGIN} and +{MARGIN} BLEU."
        ],
        columns=["", "seeds", "best dev BLEU", f"{test} BLEU", "difference [95% interval]", "shown"],
        rows=[_cells(row, done, gains[row], test) for row, done in variants.items()],
        data={row.name: {"seeds": len(done), "differences": gains[row]} for row, done in variants.items()},
        plot=lambda figure: _plot(figure, gains, test),
    )


def _differences(done: Sequence[Result], usual: Sequence[Result], test: str) -> list[float]:
    """Returns the BLEU of a variant less that of the row that it varies, for the seeds that both have."""
    found = {result.seed: result.test(test) for result in usual}
    return [result.test(test) - found[result.seed] for result in done if result.seed in found]


def _cells(row: Row, done: Sequence[Result], gains: Sequence[float], test: str) -> list[str]:
    scores = [spread([each.dev for each in done]), spread([each.test(test) for each in done])]
    told = signed(t_interval(gains), 2) if len(gains) > 1 else ""
    return [row.label, str(len(done)), *scores, told, _shown(gains)]


def _shown(gains: Sequence[float]) -> str:
    if len(gains) < 2:
        return not_shown(len(gains))
    if t_interval(gains, 0.9).within(MARGIN):
        return "no difference"
    if not t_interval(gains).excludes(0):
        return not_shown(len(gains))
    return "better" if t_interval(gains).low > 0 else "worse"


def _plot(figure: Figure, gains: dict[Row, list[float]], test: str) -> None:
    figure.set(size_inches=(9, 1.8 + 0.4 * len(gains)), layout_engine="constrained")
    axes = figure.subplots()
    axes.axvspan(-MARGIN, MARGIN, color="#E4E4E4", zorder=0, label=f"within {MARGIN} BLEU")
    axes.axvline(0, color="black", linewidth=0.6)
    for at, (row, style) in enumerate(styles_of(gains).items()):
        axes.plot(gains[row], [at] * len(gains[row]), style.marker, color=style.color)
    axes.set(xlabel=f"difference in BLEU on {test}, each seed", ylim=(len(gains) - 0.5, -0.5))
    axes.set_yticks(range(len(gains)), [row.label for row in gains])
    figure.legend(loc="outside lower center", frameon=False)
