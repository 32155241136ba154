"""Learning curves, by updates and by time (Figures 1 and 2)."""

from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..results import Result, by_row
from ..row import Row
from ..section import Section
from .colours import COLOURS

Curve = dict[int, float]  # BLEU by update


def curve(done: Sequence[Result]) -> Curve:
    """Returns the mean over the seeds of the validations' BLEU, as far as all of them have come."""
    curves = [{each["update"]: each["bleu"] for each in result.log["validations"]} for result in done]
    common = set.intersection(*map(set, curves))
    return {update: mean(each[update] for each in curves) for update in sorted(common)}


def draw(axes: Axes, lines: Iterable[tuple[Row, Curve]], x: Callable[[Row, int], float], **style: Any) -> None:
    """Draws curves over `x`, each with its row's colour."""
    for row, found in lines:
        axes.plot(
            [x(row, update) for update in found],
            list(found.values()),
            label=row.label,
            color=COLOURS.get(row.kind),
            **style,
        )
    axes.set_ylabel("dev BLEU")


def section(results: Sequence[Result], times: dict[str, Any]) -> Section:
    """Returns the section of the learning curves of Table 2's rows.

    Args:
        results: What is done.
        times: What `benchmarks/training.py --json` wrote.
    """
    curves = {row: curve(done) for row, done in by_row(results).items() if row.section == "table2"}
    seconds = {kind: entry["seconds"] for kind, entry in times["updates"]["float32"].items()}
    updates = sorted({update for found in curves.values() for update in found})
    return Section(
        name="curves",
        title="Learning curves (Figures 1 and 2)",
        text=[
            "BLEU on the dev set at every validation, the mean over the seeds. Time is the number of updates times the "
            "measured seconds per update of Table 2, without validations; the trainings' own clocks are not used. The "
            "paper's curves are pictures without figures.",
        ],
        columns=["dev BLEU after", *(f"{update:,}" for update in updates)],
        rows=[
            [row.label, *(f"{found[update]:.1f}" if update in found else "" for update in updates)]
            for row, found in curves.items()
        ],
        data={row.name: found for row, found in curves.items()},
        plot=lambda figure: _plot(figure, curves, seconds),
    )


def _plot(figure: Figure, curves: dict[Row, Curve], seconds: dict[str, float]) -> None:
    figure.set(size_inches=(9, 3.8), layout_engine="constrained")
    by_updates, by_time = figure.subplots(1, 2, sharey=True)
    draw(by_updates, curves.items(), lambda row, update: update, marker=".")
    timed = [(row, found) for row, found in curves.items() if row.kind in seconds]
    draw(by_time, timed, lambda row, update: update * seconds[row.kind] / 60, marker=".")
    by_updates.set_xlabel("updates")
    by_time.set_xlabel("minutes of updates")
    by_time.set_ylabel("")
    by_updates.legend(fontsize=8)
