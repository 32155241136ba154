"""The section of the time of an update, for all tasks, and its verdict."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from .intervals import Interval, median_interval, t_interval
from .section import Claim, Section

PROCESSES = 5  # that a verdict needs
AGAIN = "layernorm, again"  # a second model with LayerNorm: its difference to the first is noise
UNREST = 0.1  # the largest share by which the checks of the machine may differ
_JUDGED = ("rmsnorm", "prmsnorm")


class Timed(NamedTuple):
    """Updates of several kinds that took turns, in one process or in several."""

    label: str  # setting and kind of compilation
    # for each process, the seconds of each round by the name of the kind; `layernorm` and `AGAIN`
    # are among them
    processes: Sequence[Mapping[str, Sequence[float]]]
    checks: Sequence[
        float
    ] = ()  # speeds of the machine meanwhile; older logs of some tasks have none

    def ratio(self, kind: str) -> Interval:
        """Returns the ratio to LayerNorm's time with its 95% interval.

        It is the mean of the processes' median ratios with Student's t interval. Of one process, it
        is the median over the rounds with a bootstrap interval.
        """
        rounds = [np.divide(each[kind], each["layernorm"]) for each in self.processes]
        return (
            median_interval(rounds[0])
            if len(rounds) == 1
            else t_interval([float(np.median(r)) for r in rounds])
        )

    def milliseconds(self, kind: str) -> float:
        """Returns the median over the processes of the median over the rounds."""
        return 1e3 * median(median(each[kind]) for each in self.processes)

    @property
    def unrest(self) -> float:
        """By which share the fastest check of the machine is above the slowest."""
        return max(self.checks) / min(self.checks) - 1 if self.checks else 0.0

    @property
    def noise(self) -> float:
        """How far the second model with LayerNorm is from the first, at most."""
        if len(self.processes) == 1:
            again = self.ratio(AGAIN)
            return max(1 - again.low, again.high - 1, 0)
        return max(
            abs(float(np.median(np.divide(each[AGAIN], each["layernorm"]))) - 1)
            for each in self.processes
        )

    def verdict(self, kind: str) -> str:
        """Returns whether an update takes less time than with LayerNorm by more than the noise."""
        if self.unrest > UNREST:
            return f"refused: the checks of the machine differ by {self.unrest:.0%}"
        found = self.ratio(kind)
        count = len(self.processes)
        few = "" if count >= PROCESSES else f", in {count} of {PROCESSES} processes"
        if found.high < 1 - self.noise:
            return f"shown{few}"
        return f"{'the opposite' if found.low > 1 + self.noise else 'not shown'}{few}"


def speed_section(
    timed: Sequence[Timed],
    labels: Mapping[str, str],
    published: Mapping[str, float],
    text: str,
    data: Any,
) -> Section | None:
    """Returns the section of the times, or `None` without any with a second model of LayerNorm.

    Args:
        timed: What was timed, of the same kinds.
        labels: The kinds to show, and their names.
        published: The published time of the kinds in any unit; empty if the paper has none.
        text: What was measured.
        data: For the JSON file.
    """
    timed = [each for each in timed if AGAIN in each.processes[0]]
    if not timed:
        return None
    kinds = [kind for kind in (*labels, AGAIN) if kind in timed[0].processes[0]]
    names = {**labels, AGAIN: "LayerNorm, a second model"}
    ratios = {kind: taken / published["layernorm"] for kind, taken in published.items()}
    known = [kind for kind in _JUDGED if kind in ratios and kind in kinds]
    judged = [
        _judged(each, kind, names[kind], ratios[kind])
        for kind, each in itertools.product(known, timed)
    ]
    heads = [f"{each.label}: {head}" for each, head in itertools.product(timed, ("ms", "ratio"))]
    rows = []
    for kind in kinds:
        cells = [
            (f"{each.milliseconds(kind):.1f}", ratio_in_words(each.ratio(kind))) for each in timed
        ]
        paper = f"{ratios[kind]:.2f}" if kind in ratios else ""
        rows.append([names[kind], *itertools.chain(*cells), paper])
    check = "These logs have no check of the machine."
    if timed[0].checks:
        check = (
            f"A matrix product checks the machine: its speeds differ by {timed[0].unrest:.0%}, "
            f"and with more than {UNREST:.0%} the times are refused."
        )
    return Section(
        name="speed",
        title="Time of an update",
        text=[
            f"{text} Brackets hold the 95% interval of the ratio to LayerNorm's time: Student's t "
            "over processes, or, of a single process, a bootstrap over its rounds. The second "
            "model with LayerNorm shows the noise. An update takes less time if its interval is "
            f"below 1 by more than the noise. {len(timed[0].processes)} of the {PROCESSES} "
            "processes of the plan were measured; two identical models have differed by 7.5% "
            f"between processes, so a process alone is weak evidence. {check} "
            "Milliseconds are medians over the processes; their quotient can differ from the "
            "ratio, which compares kinds within each process."
        ],
        columns=["", *heads, "paper: ratio"],
        rows=rows,
        data={"measured": data, "judged": judged},
        plot=lambda figure: _plot(figure, timed, [names[kind] for kind in kinds], kinds, ratios),
        claims=[_claim(each) for each in judged],
    )


def checks_of(processes: Sequence[Mapping[str, Any]]) -> list[float]:
    """Returns the speeds of the machine that the logs of some processes have."""
    found = [np.atleast_1d(each["gflops"]) for each in processes if "gflops" in each]
    return np.concatenate([[], *found]).tolist()


def _judged(timed: Timed, kind: str, name: str, published: float) -> dict[str, Any]:
    """Returns what is known of the time of a kind, in JSON types."""
    return {
        "kind": name,
        "label": timed.label,
        "ms": timed.milliseconds(kind),
        "layernorm_ms": timed.milliseconds("layernorm"),
        "ratio": list(timed.ratio(kind)),
        "published": published,
        "verdict": timed.verdict(kind),
    }


def _claim(judged: Mapping[str, Any]) -> Claim:
    times = f"{judged['ms']:.1f} ms against {judged['layernorm_ms']:.1f} ms"
    return Claim(
        f"An update with {judged['kind']} takes less time than with LayerNorm",
        f"{judged['published']:.2f} of LayerNorm's time",
        f"{ratio_in_words(judged['ratio'])}: {times}, {judged['label']}",
        judged["verdict"],
    )


def ratio_in_words(ratio: Sequence[float]) -> str:
    """Returns a ratio with its interval as text."""
    middle, low, high = ratio
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def _plot(
    figure: Figure,
    timed: Sequence[Timed],
    names: Sequence[str],
    kinds: Sequence[str],
    published: Mapping[str, float],
) -> None:
    figure.set(size_inches=(9.5, 1.8 + 0.4 * len(kinds)), layout_engine="constrained")
    all_axes = figure.subplots(1, len(timed), sharey=True, squeeze=False)[0]
    for axes, each in zip(all_axes, timed, strict=True):
        axes.axvline(1, color="black", linewidth=0.6)
        for at, kind in enumerate(kinds):
            found = each.ratio(kind)
            errors = [[found.middle - found.low], [found.high - found.middle]]
            axes.errorbar(found.middle, at, xerr=errors, fmt="o", color="black", capsize=3)
            if kind in published:
                axes.plot(
                    published[kind], at, "D", markerfacecolor="white", markeredgecolor="black"
                )
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_title(each.label.replace(", ", ",\n"), fontsize=10)
    figure.supxlabel(
        "time of an update over LayerNorm's; diamonds: published, on a GPU", fontsize=10
    )
