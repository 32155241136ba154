"""Learning curves, by updates and by time (Figures 1 and 2)."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ...reporting.styles import KINDS, Style, band
from ..published import LABELS, TABLES
from ..published_curves import LOSS, MINUTES
from ..results import Result, by_row
from ..row import Row
from ..row_styles import styles_of

Curve = dict[int, list[float]]  # the value of each seed, by update

_MOST_COLUMNS = 10
_DIVERGED = 10  # the axis of the losses is logarithmic if the largest is this many times the smallest


def curve(done: Sequence[Result], name: str = "bleu") -> Curve:
    """Returns a value of the validations by update, for the updates that all seeds have reached."""
    curves = [{each["update"]: each[name] for each in result.log["validations"]} for result in done]
    common = set.intersection(*map(set, curves))
    return {update: [each[update] for each in curves] for update in sorted(common)}


def draw(
    axes: Axes,
    curves: Mapping[Row, Curve],
    styles: Mapping[Row, Style],
    per_update: Callable[[Row], float] = lambda row: 1,
    **given: Any,
) -> None:
    """Draws the mean over the seeds, and the range of the seeds around it.

    Args:
        axes: Where to draw.
        curves: The curve of each row.
        styles: The style of each row.
        per_update: The x value of one update of a row.
        **given: Arguments of `Axes.plot` that replace the style's.
    """
    for row, found in curves.items():
        x = [update * per_update(row) for update in found]
        axes.plot(x, [mean(each) for each in found.values()], label=row.label, **{**styles[row].line(), **given})
        band(axes, x, list(map(min, found.values())), list(map(max, found.values())), styles[row])


def section(results: Sequence[Result], times: dict[str, Any] | None) -> Section | None:
    """Returns the section of the learning curves of the main rows, or `None` without any.

    Args:
        results: The results so far.
        times: The output of `benchmarks/training.py --json`, or `None`.
    """
    rows = {row: done for row, done in by_row(results).items() if row.section == "main"}
    if not rows:
        return None
    curves = {row: curve(done) for row, done in rows.items()}
    losses = {row: found for row, done in rows.items() if (found := _losses(done))}
    updates = _spaced(sorted({update for found in curves.values() for update in found}))
    means = {row: {update: mean(each) for update, each in found.items()} for row, found in curves.items()}
    model_type = next(iter(rows)).model_type
    text = [
        "BLEU on the dev set by update, the mean over the seeds; the picture shades the range of the seeds. "
        f"{TABLES[model_type]} has the best validation of each seed."
    ]
    if times:
        text[0] += (
            f" Time is the number of updates times the seconds per update of {TABLES[model_type]}, without "
            "validations; the clocks of the trainings are not used. Rows without measured seconds have no curve by "
            "time."
        )
    if losses:
        text.append(_on_loss(losses))
    if rising := [row.label for row, found in means.items() if max(found, key=found.get) == max(found)]:
        text.append(f"BLEU is highest at the last validation of {'; '.join(rising)}: more updates may raise it.")
    timed = times["updates"]["float32"] if times else {}
    return Section(
        name="curves",
        title="Learning curves (Figures 1 and 2)" if model_type == "rnn" else "Learning curves",
        text=text,
        columns=["dev BLEU after N updates", *(f"N = {update:,}" for update in updates)],
        rows=[
            [row.label, *(f"{found[update]:.1f}" if update in found else "" for update in updates)]
            for row, found in means.items()
        ],
        data={
            row.name: {"bleu": found, **({"train_loss": losses[row]} if row in losses else {})}
            for row, found in curves.items()
        },
        plot=lambda figure: _plot(figure, curves, losses, timed),
    )


def _losses(done: Sequence[Result]) -> Curve:
    """Returns the training loss by update, if the logs have it."""
    have = all("train_loss" in each for result in done for each in result.log["validations"])
    return curve(done, "train_loss") if have else {}


def _on_loss(losses: dict[Row, Curve]) -> str:
    """Compares the training loss with the paper's Figure 1."""
    shown = [row for row in losses if row.name in LOSS]
    ours = "; ".join(
        f"{row.label} {', '.join(f'{mean(each):.2f} at {update:,}' for update, each in _ends(losses[row]))}"
        for row in shown
    )
    paper = "; ".join(
        f"{LABELS[row.name]} {', '.join(f'{loss:.2f} at {update:,}' for update, loss in _ends(LOSS[row.name]))}"
        for row in shown
    )
    minutes = " and ".join(f"{MINUTES[row.name]} minutes for {LABELS[row.name]}" for row in shown)
    if not shown:
        return "The paper's Figure 1 has no curves of these rows."
    return (
        f"Training loss by update: {ours}. In the paper's Figure 1, on other text, it is {paper}, and 9,900 updates "
        f"take {minutes} (read from the authors' vector drawing). There is no such drawing of Figure 2."
    )


def _ends(found: Mapping[int, Any]) -> list[tuple[int, Any]]:
    return [(update, found[update]) for update in (min(found), max(found))]


def _spaced(updates: Sequence[int]) -> list[int]:
    """Returns every n-th update, the last included, so that the table is not too wide."""
    step = -(-len(updates) // _MOST_COLUMNS)
    return list(updates[::-1][::step][::-1])


def _plot(figure: Figure, curves: dict[Row, Curve], losses: dict[Row, Curve], timed: dict[str, Any]) -> None:
    of_losses = ["loss", *(["published"] if any(row.name in LOSS for row in losses) else [])] if losses else []
    panels = ["updates", *(["time"] if timed else []), *of_losses]
    figure.set(size_inches=(9.5, 7.4 if len(panels) > 2 else 4.6), layout_engine="constrained")
    grid = figure.subplots(2 if len(panels) > 2 else 1, 2 if len(panels) > 1 else 1, squeeze=False).flatten()
    styles, all_axes = styles_of(curves), dict(zip(panels, grid, strict=False))
    for unused in grid[len(panels) :]:
        unused.remove()
    draw(all_axes["updates"], curves, styles)
    all_axes["updates"].set(xlabel="updates", ylabel="dev BLEU", title="BLEU by updates")
    if timed:
        found = {row: each for row, each in curves.items() if row.normalization in timed and row.program == "nmt"}
        draw(all_axes["time"], found, styles, lambda row: timed[row.normalization]["seconds"] / 60)
        all_axes["time"].set(xlabel="minutes of updates", ylabel="dev BLEU", title="BLEU by time")
    if losses:
        draw(all_axes["loss"], losses, styles)
        title = "training loss (Figure 1), ours" if "published" in all_axes else "training loss"
        all_axes["loss"].set(xlabel="updates", ylabel="training loss", title=title)
        values = [value for found in losses.values() for each in found.values() for value in each]
        if max(values) > _DIVERGED * min(values):
            all_axes["loss"].set_yscale("log")
    if "published" in all_axes:
        for kind, name in (("none", "baseline"), ("layernorm", "layernorm")):
            all_axes["published"].plot(*zip(*LOSS[name].items(), strict=True), **KINDS[kind].line() | {"marker": ""})
        all_axes["published"].set(xlabel="updates", ylabel="training loss", title="training loss, published (WMT14)")
    handles = all_axes["updates"].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)
