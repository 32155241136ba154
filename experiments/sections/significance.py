"""Whether the differences between kinds of normalization could be those between samples of sentences."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from ..section import Section
from ..significance import SAMPLES
from .colours import COLOURS, LABELS


def section(measured: Sequence[dict[str, Any]]) -> Section:
    """Returns the section of what `significance.measure` returned."""
    found = [each for each in measured if each["p"] < 0.05]
    return Section(
        name="significance",
        title="Paired bootstrap tests",
        text=[
            f"Of every two systems with the same seed the test sentences are drawn {SAMPLES:,} times with replacement. "
            "The half-width is that of the interval that holds 95% of the resulting BLEU; p is the probability of a "
            "difference at least so large if the two did not differ.",
            f"Of the {len(measured)} differences {len(found)} have p below 0.05"
            + "".join(f"; {_name(each)} is {_difference(each):+.1f}" for each in found)
            + ".",
        ],
        columns=["", "test set", "seed", "BLEU", "BLEU of RMSNorm", "difference", "p"],
        rows=[_cells(each) for each in measured],
        data=list(measured),
        plot=lambda figure: _plot(figure, measured),
    )


def _name(each: dict[str, Any]) -> str:
    return f"RMSNorm against {LABELS[each['from']]} (seed {each['seed']}, {each['test']})"


def _difference(each: dict[str, Any]) -> float:
    return each["bleu"][1] - each["bleu"][0]


def _cells(each: dict[str, Any]) -> list[str]:
    bleu = [f"{score:.1f} ± {half:.1f}" for score, half in zip(each["bleu"], each["half_width"], strict=True)]
    return [
        f"RMSNorm against {LABELS[each['from']]}",
        each["test"],
        str(each["seed"]),
        *bleu,
        f"{_difference(each):+.1f}",
        f"{each['p']:.3f}",
    ]


def _plot(figure: Figure, measured: Sequence[dict[str, Any]]) -> None:
    figure.set(size_inches=(9, 1 + 0.5 * len(measured)), layout_engine="constrained")
    axes = figure.subplots()
    for at, each in enumerate(measured):
        for kind, score, half, shift in zip(
            (each["from"], each["to"]), each["bleu"], each["half_width"], (-0.12, 0.12), strict=True
        ):
            axes.errorbar(score, at + shift, xerr=half, fmt="o", color=COLOURS[kind], capsize=3)
    for kind in dict.fromkeys(kind for each in measured for kind in (each["from"], each["to"])):
        axes.plot([], [], "o", color=COLOURS[kind], label=LABELS[kind])
    axes.set_yticks(
        range(len(measured)), [f"{LABELS[each['from']]}, {each['test']}, seed {each['seed']}" for each in measured]
    )
    axes.set_ylim(len(measured) - 0.5, -0.5)
    axes.set_xlabel("BLEU, and the interval of 95% of the samples")
    axes.legend(loc="best", fontsize=8)
