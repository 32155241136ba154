"""Whether the differences between kinds of normalization could be those between samples of sentences."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from ...reporting.section import Section
from ..colours import COLOURS
from ..measure.bootstrap import SAMPLES, Comparison
from ..results import Result
from .differences import differences

Pair = tuple[Result, Result]


def section(measured: Sequence[Comparison], results: Sequence[Result]) -> Section | None:
    """Returns the section of what `significance.measure` returned of results, if anything."""
    if not measured:
        return None
    done = {(each.row.name, each.seed): each for each in results}
    pairs = [(done[each.first, each.seed], done[each.second, each.seed]) for each in measured]
    found = [
        f"{_name(pair)} (seed {each.seed}, {each.test}, {_gain(each):+.1f})"
        for each, pair in zip(measured, pairs, strict=True)
        if each.p <= 0.05
    ]
    return Section(
        name="significance",
        title="Paired bootstrap tests",
        text=[
            "Of two systems with the same seed, sentences of the test set are drawn with replacement, the same for "
            f"both, {SAMPLES:,} times (sacreBLEU `{measured[0].signature}`). The half-width is that of the interval "
            "that holds 95% of the resulting BLEU; p is the probability of a difference at least so large if the two "
            "did not differ. Sentences are drawn, not trainings: p holds for these two trained models. What another "
            "seed changes is the spread in Table 2.",
            f"p is at most 0.05 in {len(found)} of {len(measured)} comparisons"
            + (f": {'; '.join(found)}." if found else "."),
            *dict.fromkeys(_recipes(pairs)),
        ],
        columns=["", "test set", "seed", "BLEU of the other", "BLEU of RMSNorm", "difference", "p"],
        rows=[_cells(each, pair) for each, pair in zip(measured, pairs, strict=True)],
        data=[each._asdict() for each in measured],
        plot=lambda figure: _plot(figure, measured, pairs),
    )


def _name(pair: Pair) -> str:
    first, second = pair
    return f"{second.row.label} against {first.row.label}"


def _gain(each: Comparison) -> float:
    return each.bleu[1] - each.bleu[0]


def _recipes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Tells where not only norms are compared."""
    for first, second in pairs:
        if told := differences(first, second):
            yield f"{_name((first, second))} compares two recipes, not only two norms: {first.row.label} has {told}."


def _cells(each: Comparison, pair: Pair) -> list[str]:
    bleu = [f"{score:.1f} ± {half:.1f}" for score, half in zip(each.bleu, each.half_width, strict=True)]
    return [_name(pair), each.test, str(each.seed), *bleu, f"{_gain(each):+.1f}", f"{each.p:.3f}"]


def _plot(figure: Figure, measured: Sequence[Comparison], pairs: Sequence[Pair]) -> None:
    figure.set(size_inches=(9, 1.4 + 0.5 * len(measured)), layout_engine="constrained")
    axes = figure.subplots()
    shown, labels = {}, []
    for at, (each, pair) in enumerate(zip(measured, pairs, strict=True)):
        labels.append(f"{pair[0].row.label}, {each.test}, seed {each.seed}")
        for result, score, half, shift in zip(pair, each.bleu, each.half_width, (-0.12, 0.12), strict=True):
            colour = COLOURS[result.row.kind]
            shown[result.row.label] = axes.errorbar(score, at + shift, xerr=half, fmt="o", color=colour, capsize=3)
    axes.set_yticks(range(len(measured)), labels)
    axes.set_ylim(len(measured) - 0.5, -0.5)
    axes.set_xlabel("BLEU, and the interval of 95% of the samples")
    figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3, frameon=False)
