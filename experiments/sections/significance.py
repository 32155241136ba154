"""Whether the differences between kinds of normalization could be those between samples of sentences."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from ..section import Section
from ..significance import SAMPLES, Comparison
from .colours import COLOURS
from .differences import differences


def section(measured: Sequence[Comparison]) -> Section | None:
    """Returns the section of what `significance.measure` returned, if anything."""
    if not measured:
        return None
    found = [
        f"{_name(each)} (seed {each.second.seed}, {each.test}, {_gain(each):+.1f})"
        for each in measured
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
            *dict.fromkeys(_recipes(measured)),
        ],
        columns=["", "test set", "seed", "BLEU of the other", "BLEU of RMSNorm", "difference", "p"],
        rows=[_cells(each) for each in measured],
        data=[_data(each) for each in measured],
        plot=lambda figure: _plot(figure, measured),
    )


def _name(each: Comparison) -> str:
    return f"{each.second.row.label} against {each.first.row.label}"


def _gain(each: Comparison) -> float:
    return each.bleu[1] - each.bleu[0]


def _recipes(measured: Sequence[Comparison]) -> Iterator[str]:
    """Tells where not only norms are compared."""
    for each in measured:
        if told := differences(each.first, each.second):
            yield f"{_name(each)} compares two recipes, not only two norms: {each.first.row.label} has {told}."


def _cells(each: Comparison) -> list[str]:
    bleu = [f"{score:.1f} ± {half:.1f}" for score, half in zip(each.bleu, each.half_width, strict=True)]
    return [_name(each), each.test, str(each.second.seed), *bleu, f"{_gain(each):+.1f}", f"{each.p:.3f}"]


def _data(each: Comparison) -> dict:
    names = {"from": each.first.row.name, "to": each.second.row.name, "seed": each.second.seed}
    return {**names, **{name: value for name, value in each._asdict().items() if name not in ("first", "second")}}


def _plot(figure: Figure, measured: Sequence[Comparison]) -> None:
    figure.set(size_inches=(9, 1.4 + 0.5 * len(measured)), layout_engine="constrained")
    axes = figure.subplots()
    shown = {}
    for at, each in enumerate(measured):
        for result, score, half, shift in zip(each[:2], each.bleu, each.half_width, (-0.12, 0.12), strict=True):
            colour = COLOURS[result.row.kind]
            shown[result.row.label] = axes.errorbar(score, at + shift, xerr=half, fmt="o", color=colour, capsize=3)
    labels = [f"{each.first.row.label}, {each.test}, seed {each.second.seed}" for each in measured]
    axes.set_yticks(range(len(measured)), labels)
    axes.set_ylim(len(measured) - 0.5, -0.5)
    axes.set_xlabel("BLEU, and the interval of 95% of the samples")
    figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3, frameon=False)
