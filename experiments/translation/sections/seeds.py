"""Differences between kinds of normalization, paired by seed: the paper's claims on quality."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from ...reporting.intervals import equality_power, signed, t_test
from ...reporting.limits import show_near
from ...reporting.section import Claim, Section
from ..published import RESULTS, TABLES
from ..results import Result
from ..row_styles import PUBLISHED, styles_of
from .differences import differences
from .forest import ABOVE, draw_forest
from .hypotheses import LEVEL, Hypothesis, Paired, compare
from .paired import MARGIN, RULE, narrow, told
from .verdicts import on_failure, on_recipes, seeds

_AS = {"equal": "as well as", "better": "better than"}  # by outcome
_MANY = 100  # seeds, more than anybody trains
_POWER = 0.8
_WIDTH = 10  # BLEU that the picture shows on either side of 0


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the pairs of rows that share a seed, or `None` without any."""
    judged = compare(results)
    found = [each for each in judged if each.hypothesis.measure == "test"]
    if not found:
        return None
    test, *others = results[0].log["tests"]
    return Section(
        name="seeds",
        title="Differences between kinds, paired by seed",
        text=[
            f"The BLEU of one kind less that of another on {test}, for the models of the same seed: the mean of the "
            f"seeds, its 95% interval and p by Student's t. Only {test} is judged. Two kinds count as equal if {RULE}; "
            f"otherwise as different if p is at most {LEVEL} after Holm's correction for the {len(judged)} claims on "
            "seeds in this report, those of other sections too. One seed shows neither.",
            *_on_power(found),
            *_on_recipes(found),
        ],
        columns=[
            *("", "seeds", "each seed", "mean [95% interval]", "90% interval", "p", "Holm's p", "shown"),
            *(f"{other}: mean [95% interval]" for other in others),
        ],
        rows=[[*_cells(each), *(told(each.gains_on(other)) for other in others)] for each in found],
        data=[_data(each) for each in found],
        plot=lambda figure: _plot(figure, found, test),
        claims=[_claim(each) for each in found],
    )


def _claim(paired: Paired) -> Claim:
    labels = paired.labels
    table = f"{TABLES[paired.pairs[0][0].row.model_type]}: " if paired.hypothesis.published else ""
    ours = signed(paired.interval) if paired.interval else f"{paired.gains[0]:+.1f}"
    return Claim(
        f"{table}{labels[0]} translates {_AS[paired.hypothesis.outcome]} {labels[1]}",
        _paper(paired.hypothesis),
        f"{ours} BLEU, {seeds(len(paired.gains))}",
        paired.verdict + on_failure([other for _, other in paired.pairs]) + on_recipes(*paired.pairs[0]),
    )


def _paper(hypothesis: Hypothesis) -> str:
    if not hypothesis.published:
        return "not in the paper"
    one, other = (RESULTS[name].bleu for name in hypothesis[:2])
    return f"BLEU {one[0]} and {one[1]} against {other[0]} and {other[1]} (2014, 2017)"


def _on_power(found: Sequence[Paired]) -> list[str]:
    """Says how many seeds it would take to show equality where it was not shown."""
    open_ones = [
        each for each in found if each.hypothesis.outcome == "equal" and each.interval and each.shown == "neither"
    ]
    return [
        f"{' minus '.join(each.labels)}: if new seeds have the same mean and standard deviation, {_power(each.gains)}."
        for each in open_ones
    ]


def _power(gains: Sequence[float]) -> str:
    enough = (count for count in range(2, _MANY + 1) if equality_power(gains, count, MARGIN) >= _POWER)
    if count := next(enough, None):
        return f"{count} of them show equality with a probability of {_POWER:.0%}"
    return f"even {_MANY} of them show equality with a probability below {_POWER:.0%}"


def _on_recipes(found: Sequence[Paired]) -> list[str]:
    """Names the rows whose comparisons are of recipes, not only of norms."""
    told = {each.labels[1]: recipes for each in found if (recipes := differences(*each.pairs[0][::-1]))}
    return [
        f"Comparisons with {label} are of two recipes, not only of two norms: it has {recipes}."
        for label, recipes in told.items()
    ]


def _cells(paired: Paired) -> list[str]:
    cells = [" minus ".join(paired.labels), str(len(paired.gains)), ", ".join(f"{gain:+.2f}" for gain in paired.gains)]
    if paired.interval is None:
        return [*cells, "", "", "", "", paired.shown]
    p_values = _p(t_test(paired.gains)), _p(paired.p)
    return [*cells, signed(paired.interval, 2), narrow(paired.gains), *p_values, paired.shown]


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _data(paired: Paired) -> dict[str, Any]:
    names = {"one": paired.hypothesis.one, "other": paired.hypothesis.other}
    return {
        **names,
        "seeds": [one.seed for one, _ in paired.pairs],
        "differences": paired.gains,
        "interval": paired.interval,
        "holm": paired.p,
    }


def _plot(figure: Figure, found: Sequence[Paired], test: str) -> None:
    figure.set(size_inches=(9.5, 1.9 + 0.55 * len(found)), layout_engine="constrained")
    axes = figure.subplots()
    styles = styles_of(dict.fromkeys(each.pairs[0][0].row for each in found))
    rows = {" minus\n".join(each.labels): (each.gains, styles[each.pairs[0][0].row]) for each in found}
    draw_forest(axes, rows, test)
    for at, published in enumerate(map(_published, found)):
        axes.plot(published, [at + ABOVE] * len(published), **PUBLISHED)
    ours = {at: [*each.gains, *(each.interval or [])] for at, each in enumerate(found)}
    texts = {at: told(each.gains) for at, each in enumerate(found)}
    show_near(axes, ours, 0, _WIDTH, texts, [value for each in found for value in _published(each)])
    axes.plot([], [], label="published, two test sets", **PUBLISHED)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def _published(paired: Paired) -> list[float]:
    """Returns the published differences on the two test sets."""
    if not paired.hypothesis.published:
        return []
    one, other = (RESULTS[name].bleu for name in paired.hypothesis[:2])
    return [a - b for a, b in zip(one, other, strict=True)]
