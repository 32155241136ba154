"""Learning curves, by updates and by time, and the training loss (Figures 1 and 2)."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ...reporting.styles import KINDS, draw_seeds, styles
from ..condition import Condition
from ..published import FAILS, LOSS, MINUTES, RESULTS
from ..results import Result, by_condition

Curve = dict[int, list[float]]  # the value of each seed, by update

_MOST_COLUMNS = 10
_DIVERGED = 10  # an axis is logarithmic if the largest value is this many times the smallest


def curve(done: Sequence[Result], name: str = "bleu") -> Curve:
    """Returns a value of the validations by update, for the updates that all seeds have reached."""
    found: dict[int, list[float]] = {}
    for result in done:
        for each in result.log["validations"]:
            found.setdefault(each["update"], []).append(each.get(name, math.nan))
    return {update: found[update] for update in sorted(found) if len(found[update]) == len(done)}


def section(results: Sequence[Result], processes: Sequence[Mapping[str, Any]]) -> Section | None:
    """Returns the section of the learning curves, or `None` without any.

    See `LogStore.read_times`.
    """
    conditions = {
        condition: done
        for condition, done in by_condition(results).items()
        if condition.section == "main"
    }
    if not conditions:
        return None
    curves = {condition: curve(done) for condition, done in conditions.items()}
    losses = {condition: curve(done, "train_loss") for condition, done in conditions.items()}
    updates = sorted(set().union(*curves.values()))
    updates = updates[::-1][:: -(-len(updates) // _MOST_COLUMNS)][::-1]  # the last included
    timed = processes[0]["updates"]["float32"] if processes else {}
    rnn = next(iter(conditions)).model_type == "rnn"
    published = "; ".join(
        f"{name} {first:.2f} at first, {last:.2f} after 9,900 updates, which take {MINUTES[name]} "
        "minutes"
        for name, (first, last) in LOSS.items()
    )
    rows = []
    for condition, found in curves.items():
        means = [f"{mean(found[at]):.1f}" if at in found else "" for at in updates]
        rows.append([condition.label, *means])
    return Section(
        name="curves",
        title="Learning curves" + " (Figures 1 and 2)" * rnn,
        text=[
            "BLEU on the dev set by update, the mean over the seeds. The picture shades the range "
            "of the seeds. Time is the number of updates times their measured seconds, without "
            "validations."
            + f" The training loss of the paper's Figure 1, on other text: {published}."
            * rnn
        ],
        columns=["dev BLEU after N updates", *(f"N = {update:,}" for update in updates)],
        rows=rows,
        data={
            condition.name: {"bleu": found, "train_loss": losses[condition]}
            for condition, found in curves.items()
        },
        plot=lambda figure: _plot(figure, curves, losses, timed),
    )


def _plot(
    figure: Figure,
    curves: Mapping[Condition, Curve],
    losses: Mapping[Condition, Curve],
    timed: Mapping[str, Mapping[str, Any]],
) -> None:
    figure.set(size_inches=(13, 4.6), layout_engine="constrained")
    by_updates, by_time, loss = figure.subplots(1, 3)
    _draw(by_updates, curves)
    by_updates.set(xlabel="updates", ylabel="dev BLEU", title="BLEU by updates")
    known = {
        condition: found for condition, found in curves.items() if condition.normalization in timed
    }
    _draw(by_time, known, lambda condition: median(timed[condition.normalization]["rounds"]) / 60)
    by_time.set(xlabel="minutes of updates", ylabel="dev BLEU", title="BLEU by time")
    _draw(loss, losses)
    loss.set(xlabel="updates", ylabel="training loss", title="training loss")
    of_rows = itertools.chain(*(found.values() for found in losses.values()))
    values = list(itertools.chain(*of_rows))
    if max(values) > _DIVERGED * min(values):
        loss.set_yscale("log")
    handles = by_updates.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)


def _draw(
    axes: Axes,
    curves: Mapping[Condition, Curve],
    per_update: Callable[[Condition], float] = lambda condition: 1,
) -> None:
    """Draws the mean over the seeds, and their range around it.

    Each update of a condition has an x value.
    """
    for condition, style in styles({condition: kind_of(condition) for condition in curves}).items():
        x = [update * per_update(condition) for update in curves[condition]]
        draw_seeds(axes, x, list(curves[condition].values()), style, label=condition.label)


def kind_of(condition: Condition) -> tuple[str, bool]:
    """Returns the kind of a condition, and whether it is the paper's."""
    return condition.name if condition.name in KINDS else condition.kind, condition.name in (
        *RESULTS,
        FAILS,
        *KINDS,
    )
