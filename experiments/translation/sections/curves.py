"""Learning curves, by updates and by time (Figures 1 and 2)."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ..colours import colours_of
from ..results import Result, by_row
from ..row import Row

Curve = dict[int, float]  # BLEU by update

_MOST_COLUMNS = 10


def curve(done: Sequence[Result]) -> Curve:
    """Returns the mean over the seeds of the validations' BLEU, as far as all of them have come."""
    curves = [{each["update"]: each["bleu"] for each in result.log["validations"]} for result in done]
    common = set.intersection(*map(set, curves))
    return {update: mean(each[update] for each in curves) for update in sorted(common)}


def draw(
    axes: Axes,
    curves: Mapping[Row, Curve],
    colours: Mapping[Row, str],
    per_update: Callable[[Row], float] = lambda row: 1,
    **style: Any,
) -> None:
    """Draws curves over the number of updates, times what a row's update is to count."""
    for row, found in curves.items():
        x = [update * per_update(row) for update in found]
        axes.plot(x, list(found.values()), label=row.label, color=colours[row], marker=".", **style)


def section(results: Sequence[Result], times: dict[str, Any] | None) -> Section | None:
    """Returns the section of the learning curves of Table 2's rows, if there are any.

    Args:
        results: What is done.
        times: What `benchmarks/training.py --json` wrote, if it was run.
    """
    curves = {row: curve(done) for row, done in by_row(results).items() if row.section == "table2"}
    if not curves:
        return None
    updates = _spaced(sorted({update for found in curves.values() for update in found}))
    text = [
        "BLEU on the dev set, the mean over the seeds after as many updates; Table 2 has the best of each. The paper's "
        "curves have no numbers."
    ]
    if times:
        text[0] += (
            " Time is the number of updates times the measured seconds per update of Table 2, without validations; the "
            "trainings' own clocks are not used."
        )
    if rising := [row.label for row, found in curves.items() if max(found, key=found.get) == max(found)]:
        text.append(f"The last validation is the best, and more updates might give more, for {'; '.join(rising)}.")
    return Section(
        name="curves",
        title="Learning curves (Figures 1 and 2)",
        text=text,
        columns=["dev BLEU after N updates", *(f"N = {update:,}" for update in updates)],
        rows=[
            [row.label, *(f"{found[update]:.1f}" if update in found else "" for update in updates)]
            for row, found in curves.items()
        ],
        data={row.name: found for row, found in curves.items()},
        plot=lambda figure: _plot(figure, curves, times["updates"]["float32"] if times else {}),
    )


def _spaced(updates: Sequence[int]) -> list[int]:
    """Returns every n-th up to the last, so many as a table has room for."""
    step = -(-len(updates) // _MOST_COLUMNS)
    return list(updates[::-1][::step][::-1])


def _plot(figure: Figure, curves: dict[Row, Curve], timed: dict[str, Any]) -> None:
    figure.set(size_inches=(9, 4.2), layout_engine="constrained")
    by_updates, *by_time = figure.subplots(1, 2 if timed else 1, sharey=True, squeeze=False)[0]
    colours = colours_of(curves)
    draw(by_updates, curves, colours)
    by_updates.set(xlabel="updates", ylabel="dev BLEU")
    figure.legend(*by_updates.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    for axes in by_time:
        found = {row: each for row, each in curves.items() if row.normalization in timed}
        draw(axes, found, colours, lambda row: timed[row.normalization]["seconds"] / 60)
        axes.set_xlabel("minutes of updates")
