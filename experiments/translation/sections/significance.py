"""Paired bootstrap tests: whether two trained models differ by more than the choice of the test sentences."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from ...reporting.intervals import holm
from ...reporting.section import Section
from ..measure.bootstrap import PAIRS, SAMPLES, Comparison
from ..results import Result
from ..row_styles import styles_of
from .differences import differences

LEVEL = 0.05

Pair = tuple[Result, Result]


def section(measured: Sequence[Comparison], results: Sequence[Result]) -> Section | None:
    """Returns the section of the comparisons of some results, or `None` without any."""
    if not measured:
        return None
    done = {(each.row.name, each.seed): each for each in results}
    pairs = [(done[each.first, each.seed], done[each.second, each.seed]) for each in measured]
    adjusted = holm([each.p for each in measured])
    found = [
        f"{_name(pair)} (seed {each.seed}, {each.test}, {_gain(each):+.1f})"
        for each, pair, p in zip(measured, pairs, adjusted, strict=True)
        if p <= LEVEL
    ]
    return Section(
        name="significance",
        title="Paired bootstrap tests",
        text=[
            f"The test set is resampled with replacement {SAMPLES:,} times, in the same way for both models of a pair, "
            f"which have the same seed (sacreBLEU `{measured[0].signature}`). Brackets hold 95% of the resulting BLEU. "
            "p is the probability of a difference at least as large if the two models did not differ. "
            f"Holm's p is adjusted for the {len(measured)} comparisons. A small p shows that two trained models "
            "differ, not that two kinds of normalization do: for that, compare the seeds in Table 2.",
            f"Holm's p is at most {LEVEL} in {len(found)} of {len(measured)} comparisons"
            + (f": {'; '.join(found)}." if found else "."),
            *_untested(measured, done),
            *dict.fromkeys(_recipes(pairs)),
        ],
        columns=["", "test set", "seed", "BLEU of the other", "BLEU", "difference", "p", "Holm's p"],
        rows=[_cells(each, pair, p) for each, pair, p in zip(measured, pairs, adjusted, strict=True)],
        data=[{**each._asdict(), "holm": p} for each, p in zip(measured, adjusted, strict=True)],
        plot=lambda figure: _plot(figure, measured, pairs),
    )


def _name(pair: Pair) -> str:
    first, second = pair
    return f"{second.row.label} against {first.row.label}"


def _gain(each: Comparison) -> float:
    return each.bleu[1] - each.bleu[0]


def _untested(measured: Sequence[Comparison], done: dict[tuple[str, int], Result]) -> list[str]:
    """Names the pairs of rows that were trained but not compared."""
    labels = {name: result.row.label for (name, _), result in done.items()}
    tested = {(each.first, each.second) for each in measured}
    missing = [pair for pair in PAIRS if pair not in tested and set(pair) <= labels.keys()]
    named = "; ".join(f"{labels[second]} against {labels[first]}" for first, second in missing)
    return [f"Not tested, because the translations were not kept: {named}."] if missing else []


def _recipes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Names the pairs in which more than the norms differ."""
    for first, second in pairs:
        if told := differences(first, second):
            yield f"{_name((first, second))} compares two recipes, not only two norms: {first.row.label} has {told}."


def _cells(each: Comparison, pair: Pair, adjusted: float) -> list[str]:
    bleu = [
        f"{score:.1f} [{score - half:.1f}, {score + half:.1f}]"
        for score, half in zip(each.bleu, each.half_width, strict=True)
    ]
    return [_name(pair), each.test, str(each.seed), *bleu, f"{_gain(each):+.1f}", f"{each.p:.3f}", f"{adjusted:.3f}"]


def _plot(figure: Figure, measured: Sequence[Comparison], pairs: Sequence[Pair]) -> None:
    figure.set(size_inches=(9, 1.9 + 0.5 * len(measured)), layout_engine="constrained")
    axes = figure.subplots()
    looks = styles_of(dict.fromkeys(result.row for pair in pairs for result in pair))
    shown, labels = {}, []
    for at, (each, pair) in enumerate(zip(measured, pairs, strict=True)):
        labels.append(f"{pair[1].row.label} against\n{pair[0].row.label}, seed {each.seed}")
        for result, score, half, shift in zip(pair, each.bleu, each.half_width, (-0.12, 0.12), strict=True):
            style = looks[result.row]
            shown[result.row.label] = axes.errorbar(
                score, at + shift, xerr=half, fmt=style.marker, color=style.color, capsize=3
            )
    axes.set_yticks(range(len(measured)), labels, fontsize=9)
    axes.set_ylim(len(measured) - 0.5, -0.5)
    axes.set_xlabel(f"BLEU on {', '.join(dict.fromkeys(each.test for each in measured))}, with the 95% interval")
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=3, frameon=False)
