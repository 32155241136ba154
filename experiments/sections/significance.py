"""Whether the differences between kinds of normalization could be those between samples of sentences."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sacrebleu import BLEU
from sacrebleu.significance import PairedTest

from ..results import Result
from ..runs import read_lines
from ..section import Section
from .colours import COLOURS, LABELS

PAIRS = (("layernorm", "rmsnorm"), ("none", "rmsnorm"))
SAMPLES = 1000


def measure(results: Sequence[Result], references: dict[str, Path]) -> list[dict[str, Any]]:
    """Returns sacreBLEU's paired bootstrap test for each pair of kinds, test set and seed that both are done with.

    Args:
        results: What is done.
        references: The reference translation of each test set.

    Reference: Koehn (2004), Statistical significance tests for machine translation evaluation.
    """
    table = {(each.row.kind, each.seed): each for each in results if each.row.section == "table2" and each.row.kind}
    return [
        {"from": first, "to": second, "test": test, "seed": seed, **_compare(table, first, second, seed, test, path)}
        for first, second in PAIRS
        for test, path in references.items()
        for seed in sorted({seed for kind, seed in table if kind == first} & {s for k, s in table if k == second})
    ]


def _compare(table, first: str, second: str, seed: int, test: str, path: Path) -> dict[str, Any]:
    systems = [(kind, table[kind, seed].translations[test]) for kind in (first, second)]
    paired = PairedTest(systems, {"BLEU": BLEU()}, [read_lines(path)], test_type="bs", n_samples=SAMPLES)
    base, other = paired()[1]["BLEU"]
    return {"bleu": [base.score, other.score], "half_width": [base.ci, other.ci], "p": other.p_value}


def section(measured: Sequence[dict[str, Any]]) -> Section:
    """Returns the section of what `measure` returned."""
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
    figure.set(size_inches=(9, 0.6 + 0.4 * len(measured)), layout_engine="constrained")
    axes = figure.subplots()
    for at, each in enumerate(measured):
        for kind, score, half, shift in zip(
            (each["from"], each["to"]), each["bleu"], each["half_width"], (-0.12, 0.12), strict=True
        ):
            axes.errorbar(score, at + shift, xerr=half, fmt="o", color=COLOURS[kind], capsize=3)
    for kind in dict.fromkeys(kind for each in measured for kind in (each["from"], each["to"])):
        axes.plot([], [], "o", color=COLOURS[kind], label=LABELS[kind])
    axes.set_yticks(range(len(measured)), [f"{each['test']}, seed {each['seed']}" for each in measured])
    axes.set_xlabel("BLEU, and the interval of 95% of the samples")
    axes.invert_yaxis()
    axes.legend(loc="best", fontsize=8)
