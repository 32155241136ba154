"""Paired bootstrap tests: whether two trained models differ by more than the choice of the test sentences."""

from collections import Counter
from collections.abc import Sequence

from ...reporting.intervals import holm
from ...reporting.section import Section
from ..measure.bootstrap import PAIRS, SAMPLES, Comparison
from ..results import Result
from .hypotheses import LEVEL

Pair = tuple[Result, Result]


def section(measured: Sequence[Comparison], results: Sequence[Result]) -> Section | None:
    """Returns the section of the comparisons of some results, or `None` without any."""
    if not measured:
        return None
    done = {(each.row.name, each.seed): each for each in results}
    pairs = [(done[each.first, each.seed], done[each.second, each.seed]) for each in measured]
    adjusted = holm([each.p for each in measured])
    differs = Counter(_name(pair) for pair, p in zip(pairs, adjusted, strict=True) if p <= LEVEL)
    counts = [f"{differs[name]} of {total} of {name}" for name, total in Counter(map(_name, pairs)).items()]
    return Section(
        name="significance",
        title="Paired bootstrap tests",
        text=[
            f"The test set is resampled with replacement {SAMPLES:,} times, in the same way for both models of a pair, "
            f"which have the same seed (sacreBLEU `{measured[0].signature}`). p is the probability of a difference at "
            f"least as large if the two models did not differ, and Holm's p is adjusted for the {len(measured)} "
            "comparisons. A small p shows that two trained models differ, not that two kinds of normalization do: that "
            "takes several seeds, as in the section before.",
            f"Holm's p is at most {LEVEL} in {differs.total()} of {len(measured)} comparisons: {'; '.join(counts)}.",
            *_untested(measured, done),
        ],
        columns=["", "test set", "seed", "BLEU of the other", "BLEU", "difference", "p", "Holm's p"],
        rows=[_cells(each, pair, p) for each, pair, p in zip(measured, pairs, adjusted, strict=True)],
        data=[{**each._asdict(), "holm": p} for each, p in zip(measured, adjusted, strict=True)],
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
    return [f"Not tested this way, because the translations were not kept: {named}."] if missing else []


def _cells(each: Comparison, pair: Pair, adjusted: float) -> list[str]:
    bleu = [f"{score:.1f}" for score in each.bleu]
    return [_name(pair), each.test, str(each.seed), *bleu, f"{_gain(each):+.1f}", f"{each.p:.3f}", f"{adjusted:.3f}"]
