"""Differences between kinds of normalization, paired by seed: the paper's claims on quality."""

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.intervals import Interval, holm, seeds_needed, signed, t_interval, t_test
from ...reporting.limits import show_near
from ...reporting.section import Claim, Section
from ..published import RESULTS, TABLES
from ..results import Result
from ..row_styles import PUBLISHED, styles_of
from .differences import differences
from .paired import MARGIN, RULE, equal, first_test, narrow, told
from .verdicts import not_shown, on_failure, on_recipes, seeds

LEVEL = 0.05
_MANY = 100  # seeds, more than anybody trains
_WIDTH = 8  # BLEU that the picture shows on either side of 0


class Hypothesis(NamedTuple):
    """A claim about two rows, by their names. The paper's are about rows of Table 2 or 4."""

    one: str
    other: str
    equal: bool  # as good as the other, otherwise better

    @property
    def published(self) -> bool:
        """Whether the paper has both rows."""
        return {self.one, self.other} <= RESULTS.keys()


HYPOTHESES = (
    Hypothesis("rmsnorm", "layernorm", equal=True),
    Hypothesis("prmsnorm", "layernorm", equal=True),
    Hypothesis("layernorm", "baseline", equal=False),
    Hypothesis("rmsnorm", "baseline", equal=False),
    Hypothesis("layernorm-recipe", "none-recipe", equal=False),
    Hypothesis("rmsnorm-recipe", "none-recipe", equal=False),
    Hypothesis("rmsnorm", "l2norm", equal=False),
    Hypothesis("rmsnorm", "l2norm-scaled", equal=True),
    Hypothesis("post-rmsnorm", "post-layernorm", equal=True),
    Hypothesis("post-prmsnorm", "post-layernorm", equal=True),
    Hypothesis("post-rmsnorm-longer", "post-layernorm-longer", equal=True),
    Hypothesis("pre-rmsnorm", "pre-layernorm", equal=True),
)


class Paired(NamedTuple):
    """Two rows on the first test set, over the seeds that both have."""

    hypothesis: Hypothesis
    pairs: Sequence[tuple[Result, Result]]
    gains: Sequence[float]  # BLEU of the first row less that of the second
    p: float | None = None  # adjusted by Holm's method; `None` for one seed

    @property
    def labels(self) -> tuple[str, str]:
        """The labels of the two rows."""
        one, other = self.pairs[0]
        return one.row.label, other.row.label

    @property
    def interval(self) -> Interval | None:
        """The mean difference with its 95% interval."""
        return t_interval(self.gains) if len(self.gains) > 1 else None

    def gains_on(self, test: str) -> list[float]:
        """Returns the differences on another test set."""
        return [one.test(test) - other.test(test) for one, other in self.pairs]

    @property
    def recipes(self) -> str:
        """The options in which the second row differs from the first, or an empty string."""
        return differences(*self.pairs[0][::-1])


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the pairs of rows that share a seed, or `None` without any."""
    found = compare(results)
    if not found:
        return None
    test, *others = results[0].log["tests"]
    tested = sum(each.p is not None for each in found)
    return Section(
        name="seeds",
        title="Differences between kinds, paired by seed",
        text=[
            f"The BLEU of one kind less that of another on {test}, for the models of the same seed: the mean of the "
            f"seeds, its 95% interval and p by Student's t, with p adjusted for the {tested} comparisons by Holm's "
            f"method. Two kinds count as equal if {RULE}; otherwise as different if the adjusted p is at most {LEVEL}. "
            f"One seed shows neither. Only {test} is judged.",
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


def compare(results: Sequence[Result]) -> list[Paired]:
    """Returns the comparison of each hypothesis whose rows share a seed."""
    done = {(each.row.name, each.seed): each for each in results}
    found = []
    for hypothesis in HYPOTHESES:
        one, other, _ = hypothesis
        shared = sorted(seed for name, seed in done if name == one and (other, seed) in done)
        pairs = [(done[one, seed], done[other, seed]) for seed in shared]
        gains = [_score(first) - _score(second) for first, second in pairs]
        if pairs:
            found.append(Paired(hypothesis, pairs, gains))
    tested = [each for each in found if len(each.gains) > 1]
    adjusted = iter(holm([t_test(each.gains) for each in tested]))
    return [each._replace(p=next(adjusted)) if len(each.gains) > 1 else each for each in found]


def _score(result: Result) -> float:
    return result.test(first_test([result]))


def _shown(paired: Paired) -> str:
    if equal(paired.gains):
        return "equal"
    if paired.p is not None and paired.p <= LEVEL:
        return "better" if mean(paired.gains) > 0 else "worse"
    return "neither"


def _claim(paired: Paired) -> Claim:
    labels = paired.labels
    table = f"{TABLES[paired.pairs[0][0].row.model_type]}: " if paired.hypothesis.published else ""
    ours = signed(paired.interval) if paired.interval else f"{paired.gains[0]:+.1f}"
    return Claim(
        f"{table}{labels[0]} translates {'as well as' if paired.hypothesis.equal else 'better than'} {labels[1]}",
        _paper(paired.hypothesis),
        f"{ours} BLEU, {seeds(len(paired.gains))}",
        _verdict(paired) + on_failure([other for _, other in paired.pairs]) + on_recipes(*paired.pairs[0]),
    )


def _paper(hypothesis: Hypothesis) -> str:
    if not hypothesis.published:
        return "not in the paper"
    one, other = (RESULTS[name].bleu for name in hypothesis[:2])
    return f"BLEU {one[0]} and {one[1]} against {other[0]} and {other[1]} (2014, 2017)"


def _verdict(paired: Paired) -> str:
    shown = _shown(paired)
    if shown == "neither":
        return not_shown(len(paired.gains))
    return "borne out" if shown == ("equal" if paired.hypothesis.equal else "better") else "not borne out"


def _on_power(found: Sequence[Paired]) -> list[str]:
    """Says how many seeds it would take to show equality where it was not shown."""
    open_ones = [each for each in found if each.hypothesis.equal and each.interval and _shown(each) == "neither"]
    return [
        f"{' minus '.join(each.labels)}: if mean and standard deviation of more seeds are those of these "
        f"{len(each.gains)}, {_power(each.gains)}."
        for each in open_ones
    ]


def _power(gains: Sequence[float]) -> str:
    count = seeds_needed(gains, MARGIN)
    if count is None:
        return "no number of seeds shows equality, because the mean is not within the margin"
    if count > _MANY:
        return f"equality takes more than {_MANY} seeds, because the mean is near the margin"
    return f"equality takes {count} seeds"


def _on_recipes(found: Sequence[Paired]) -> list[str]:
    """Names the rows whose comparisons are of recipes, not only of norms."""
    told = {each.labels[1]: each.recipes for each in found if each.recipes}
    return [
        f"Comparisons with {label} are of two recipes, not only of two norms: it has {recipes}."
        for label, recipes in told.items()
    ]


def _cells(paired: Paired) -> list[str]:
    cells = [" minus ".join(paired.labels), str(len(paired.gains)), ", ".join(f"{gain:+.2f}" for gain in paired.gains)]
    if paired.interval is None:
        return [*cells, "", "", "", "", _shown(paired)]
    p = [f"{each:.3f}" if each >= 0.001 else "< 0.001" for each in (t_test(paired.gains), paired.p)]
    return [*cells, signed(paired.interval, 2), narrow(paired.gains), *p, _shown(paired)]


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
    axes.axvspan(-MARGIN, MARGIN, color="#E4E4E4", zorder=0, label=f"within {MARGIN} BLEU")
    axes.axvline(0, color="black", linewidth=0.6)
    styles = styles_of(dict.fromkeys(each.pairs[0][0].row for each in found))
    for at, each in enumerate(found):
        _draw(axes, at, each, styles[each.pairs[0][0].row])
    axes.set_yticks(range(len(found)), [" minus\n".join(each.labels) for each in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    ours = {at: [*each.gains, *(each.interval or [])] for at, each in enumerate(found)}
    texts = {at: told(each.gains) for at, each in enumerate(found)}
    show_near(axes, ours, 0, _WIDTH, texts, [value for each in found for value in _published(each)])
    axes.set_xlabel(f"difference in BLEU on {test}")
    axes.plot([], [], "|", color="black", markersize=9, label="each seed")
    axes.errorbar([], [], xerr=[], fmt="o", color="black", capsize=4, label="mean with 95% interval")
    axes.plot([], [], label="published, two test sets", **PUBLISHED)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def _draw(axes: Axes, at: int, paired: Paired, style: Any) -> None:
    axes.plot(paired.gains, [at - 0.22] * len(paired.gains), "|", color=style.color, markersize=9)
    if paired.interval:
        middle, low, high = paired.interval
        errors = [[middle - low], [high - middle]]
        axes.errorbar(middle, at, xerr=errors, fmt=style.marker, color=style.color, capsize=4)
    published = _published(paired)
    axes.plot(published, [at + 0.22] * len(published), **PUBLISHED)


def _published(paired: Paired) -> list[float]:
    """Returns the published differences on the two test sets."""
    if not paired.hypothesis.published:
        return []
    one, other = (RESULTS[name].bleu for name in paired.hypothesis[:2])
    return [a - b for a, b in zip(one, other, strict=True)]
