"""Table 2: BLEU and time of every kind of normalization."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ..colours import colours_of
from ..published import TABLE2
from ..results import Result, by_row, spread
from ..row import Row
from .differences import differences

_PUBLISHED = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "linestyle": "none"}

Scores = dict[str, list[float]]  # BLEU of each seed, by `dev` and test set


def section(results: Sequence[Result], times: dict[str, Any] | None) -> Section | None:
    """Returns the section of the rows of Table 2, if there are any.

    Args:
        results: What is done.
        times: What `benchmarks/training.py --json` wrote, if it was run.
    """
    rows = by_row(result for result in results if result.row.section == "table2")
    if not rows:
        return None
    scores = {row: _scores(done) for row, done in rows.items()}
    updates = times["updates"]["float32"] if times else {}
    cells = [_cells(row, found, updates) for row, found in scores.items()]
    log = next(iter(rows.values()))[0].log
    signature = next(iter(log["tests"].values()))["signature"]
    text = [
        "BLEU is of translations with a beam of 5 by the model of the best validation, cased and detokenised, "
        f"sacreBLEU `{signature}`; of several seeds the mean and the standard deviation.",
        *_on_options(rows),
        *(_on_time(times, log["options"]) if times else []),
    ]
    return Section(
        name="table2",
        title="Translation quality and speed (Table 2)",
        text=text,
        columns=list(cells[0]),
        rows=[list(each.values()) for each in cells],
        data={"bleu": {row.name: found for row, found in scores.items()}, "times": times},
        plot=lambda figure: _plot(figure, scores, updates),
    )


def _scores(done: Sequence[Result]) -> Scores:
    tests = done[0].log["tests"]
    return {"dev": [each.dev for each in done]} | {test: [each.test(test) for each in done] for test in tests}


def _on_options(rows: dict[Row, list[Result]]) -> list[str]:
    """Tells which rows have options that LayerNorm, or the first row that there is, has not."""
    usual = next((row for row in rows if row.name == "layernorm"), next(iter(rows)))
    told = {row.label: differences(done[0], rows[usual][0]) for row, done in rows.items()}
    own = "; ".join(f"{label} has {options}" for label, options in told.items() if options)
    return [f"Besides their norm, all rows are trained with the options of {usual.label}, but {own}."] if own else []


def _on_time(times: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """Tells how the seconds were measured, and how the cost of the norms differs from the paper's."""
    updates, layernorm, baseline = times["updates"]["float32"], TABLE2["layernorm"], TABLE2["baseline"]
    return [
        f"Seconds per 1,000 updates come from `benchmarks/training.py` of commit {times['commit']} on "
        f"{_threads(times['threads'])} while nothing else trains: all kinds with the same options, in turn on the same "
        f"{len(times['widths'])} batches of this training text, the median of the rounds and half of what lies between "
        "their quartiles. The saving against LayerNorm is the median of the rounds' ratios. The paper's seconds are of "
        "one TITAN X, the mean and the standard deviation of three runs, with embedding 512 and state 1024, where ours "
        f"are {options['embedding_size']} and {options['state_size']}.",
        f"RMSNorm takes {_over_layernorm(updates, 'rmsnorm')[1]:.2f} of LayerNorm's time here and "
        f"{TABLE2['rmsnorm'].seconds / layernorm.seconds:.2f} in the paper; LayerNorm takes "
        f"{updates['layernorm']['ratio']:.2f} times the Baseline's here and {layernorm.seconds / baseline.seconds:.2f} "
        "times there. Where the time of an update goes stands below.",
    ]


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def _over_layernorm(updates: dict[str, Any], kind: str) -> list[float]:
    """Returns the quartiles of the rounds' ratios of a kind's time to LayerNorm's."""
    return np.quantile(np.divide(updates[kind]["rounds"], updates["layernorm"]["rounds"]), [0.25, 0.5, 0.75]).tolist()


def _cells(row: Row, scores: Scores, updates: dict[str, Any]) -> dict[str, str]:
    """Returns the cells of a row by column; those of time are there if any was measured."""
    cells = {"": row.label, "seeds": str(len(scores["dev"]))}
    cells |= {f"{name} BLEU": spread(values) for name, values in scores.items()}
    cells["paper: BLEU 2014, 2017"] = "{:.1f}, {:.1f}".format(*TABLE2[row.name].bleu) if row.name in TABLE2 else ""
    return cells | (_time_cells(row, updates) if updates else {})


def _time_cells(row: Row, updates: dict[str, Any]) -> dict[str, str]:
    kind, seconds, saving = row.normalization, "", ""
    if kind in updates:
        low, high = updates[kind]["seconds_quartiles"]
        seconds = f"{1e3 * updates[kind]['seconds']:.0f} ± {1e3 * (high - low) / 2:.0f}"
    if kind in updates and kind not in ("none", "layernorm"):
        saving = f"{1 - _over_layernorm(updates, kind)[1]:.1%}"
    paper = TABLE2.get(row.name)
    return {
        "s per 1,000 updates": seconds,
        "saving": saving,
        "paper: s per 1,000": f"{paper.seconds} ± {paper.deviation:.3g}" if paper else "",
        "paper: saving": f"{paper.saving:.1%}" if paper and paper.saving else "",
    }


def _plot(figure: Figure, rows: dict[Row, Scores], updates: dict[str, Any]) -> None:
    figure.set(size_inches=(9, 1.7 + 0.5 * len(rows)), layout_engine="constrained")
    quality, *speed = figure.subplots(1, 2 if updates else 1, sharey=True, squeeze=False)[0]
    _draw_quality(quality, rows)
    for axes in speed:
        _draw_speed(axes, rows, updates)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)


def _draw_quality(axes: Axes, rows: dict[Row, Scores]) -> None:
    """Draws dev and the first test set: every seed as a point, and a line at their mean."""
    marked = dict(zip(next(iter(rows.values())), "os", strict=False))
    for at, (row, colour) in enumerate(colours_of(rows).items()):
        for (name, marker), shift in zip(marked.items(), (-0.15, 0.15), strict=True):
            values = rows[row][name]
            axes.plot(values, [at + shift] * len(values), marker, color=colour, alpha=0.6)
            axes.plot([mean(values)] * 2, [at + shift - 0.12, at + shift + 0.12], color=colour)
        if row.name in TABLE2:
            axes.plot(TABLE2[row.name].bleu[0], at, **_PUBLISHED)
    for name, marker in marked.items():
        axes.plot([], [], marker, color="black", label=f"{name}, each seed")
    axes.plot([], [], label="published (newstest2014)", **_PUBLISHED)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("BLEU")


def _draw_speed(axes: Axes, rows: dict[Row, Scores], updates: dict[str, Any]) -> None:
    """Draws a bar of the median ratio over the rounds, and a line between the quartiles."""
    for at, (row, colour) in enumerate(colours_of(rows).items()):
        if row.normalization in updates:
            low, middle, high = _over_layernorm(updates, row.normalization)
            axes.barh(at, middle, xerr=[[middle - low], [high - middle]], color=colour, capsize=3)
        if row.name in TABLE2:
            axes.plot(TABLE2[row.name].seconds / TABLE2["layernorm"].seconds, at, **_PUBLISHED)
    axes.set_xlabel("time of an update over LayerNorm's")
