"""Table 2: BLEU and time of every kind of normalization."""

from collections.abc import Sequence
from statistics import mean, median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..published import TABLE2
from ..results import Result, by_row, spread
from ..row import Row
from ..section import Section
from .colours import COLOURS

_COLUMNS = ["s per 1,000 updates", "saving", "paper: BLEU 2014, 2017", "paper: s per 1,000", "paper: saving"]
_OTHER = "#333333"  # the colour of a kind that the paper has not


def section(results: Sequence[Result], times: dict[str, Any]) -> Section:
    """Returns the section of the rows of Table 2.

    Args:
        results: What is done.
        times: What `benchmarks/training.py --json` wrote.
    """
    rows = by_row(result for result in results if result.row.section == "table2")
    log = results[0].log
    tests, updates = list(log["tests"]), times["updates"]["float32"]
    text = [
        "BLEU is of translations with a beam of 5 by the model of the best validation, cased and detokenised, "
        f"sacreBLEU `{log['tests'][tests[0]]['signature']}`; of several seeds the mean and the standard deviation.",
        f"Seconds per 1,000 updates come from `benchmarks/training.py` on {times['cores']} processor cores while "
        f"nothing else trains: all kinds in turn on the same {len(times['widths'])} batches of this training text, the "
        "median of the rounds and half of what lies between their quartiles; the saving against LayerNorm is the "
        "median of the rounds' ratios. The paper's are of one TITAN X, embedding 512 and state 1024, where ours are "
        f"{log['options']['embedding_size']} and {log['options']['state_size']}.",
        _on_time(updates),
        *(f"{row.label} is trained with {_pairs(row)}." for row in rows if row.options),
    ]
    return Section(
        name="table2",
        title="Translation quality and speed (Table 2)",
        text=text,
        columns=["", "seeds", "dev BLEU", *(f"{test} BLEU" for test in tests), *_COLUMNS],
        rows=[_cells(row, done, tests, updates) for row, done in rows.items()],
        data={"bleu": {row.name: _bleu(done, tests) for row, done in rows.items()}, "times": times},
        plot=lambda figure: _plot(figure, {row: _bleu(done, tests) for row, done in rows.items()}, updates),
    )


def _pairs(row: Row) -> str:
    """Tells which options a row has of its own."""
    return " and ".join(f"`{name}` {value:g}" for name, value in row.options.items())


def _bleu(done: Sequence[Result], tests: Sequence[str]) -> dict[str, list[float]]:
    return {"dev": [each.dev for each in done]} | {test: [each.test(test) for each in done] for test in tests}


def _on_time(updates: dict[str, Any]) -> str:
    """Tells how the cost of the norms differs from the paper's."""
    ours, paper = (1 - _saving(updates, "rmsnorm"), 1 - _published_saving("rmsnorm"))
    return (
        f"RMSNorm takes {ours:.2f} of LayerNorm's time here and {paper:.2f} in the paper; LayerNorm takes "
        f"{updates['layernorm']['ratio']:.2f} times the Baseline's here and "
        f"{TABLE2['layernorm']['seconds'][0] / TABLE2['none']['seconds'][0]:.2f} times there. On a processor, and "
        "compiled, the matrix products are the greater part of an update, and a norm is fused with its neighbours; on "
        "the paper's GPU each of its operations was a launch of its own."
    )


def _saving(updates: dict[str, Any], kind: str) -> float:
    """Returns the part of LayerNorm's time that a kind saves, the median over the rounds."""
    pairs = zip(updates[kind]["rounds"], updates["layernorm"]["rounds"], strict=True)
    return 1 - median(mine / layernorm for mine, layernorm in pairs)


def _published_saving(kind: str) -> float:
    return 1 - TABLE2[kind]["seconds"][0] / TABLE2["layernorm"]["seconds"][0]


def _cells(row: Row, done: Sequence[Result], tests: Sequence[str], updates: dict[str, Any]) -> list[str]:
    bleu = [spread(values) for values in _bleu(done, tests).values()]
    kind, time, paper = row.kind, ["", ""], ["", "", ""]
    if kind in updates:
        low, high = updates[kind]["seconds_quartiles"]
        time = [f"{1e3 * updates[kind]['seconds']:.0f} ± {1e3 * (high - low) / 2:.0f}", _percent(updates, kind)]
    if kind in TABLE2:
        seconds, deviation = TABLE2[kind]["seconds"]
        saving = f"{_published_saving(kind):.1%}" if kind not in ("none", "layernorm") else ""
        paper = ["{:.1f}, {:.1f}".format(*TABLE2[kind]["bleu"]), f"{seconds} ± {deviation:.3g}", saving]
    return [row.label, str(len(done)), *bleu, *time, *paper]


def _percent(updates: dict[str, Any], kind: str) -> str:
    return f"{_saving(updates, kind):.1%}" if kind not in ("none", "layernorm") else ""


def _plot(figure: Figure, rows: dict[Row, dict[str, list[float]]], updates: dict[str, Any]) -> None:
    figure.set(size_inches=(9, 3.6), layout_engine="constrained")
    quality, speed = figure.subplots(1, 2)
    _plot_bleu(quality, rows)
    timed = [row for row in rows if row.kind in updates]
    for row in timed:
        entry = updates[row.kind]
        low, high = (1e3 * each for each in entry["seconds_quartiles"])
        middle = 1e3 * entry["seconds"]
        error = [[middle - low], [high - middle]]
        speed.barh(row.label, middle, xerr=error, color=COLOURS[row.kind], capsize=3)
    speed.set_xlabel("seconds per 1,000 updates (bars between the quartiles)")
    speed.invert_yaxis()


def _plot_bleu(axes: Axes, rows: dict[Row, dict[str, list[float]]]) -> None:
    """Draws every seed as a point: dev and the first test set."""
    dev, test = list(next(iter(rows.values())))[:2]
    for at, (row, bleu) in enumerate(rows.items()):
        colour = COLOURS.get(row.kind, _OTHER)
        for name, marker, shift in ((dev, "o", -0.12), (test, "s", 0.12)):
            values = bleu[name]
            axes.plot(values, [at + shift] * len(values), marker, color=colour, alpha=0.6, markersize=6)
            axes.plot([mean(values)] * 2, [at + shift - 0.1, at + shift + 0.1], color=colour)
    for name, marker in ((dev, "o"), (test, "s")):
        axes.plot([], [], marker, color="black", label=f"{name}, a point for each seed")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_xlabel("BLEU")
    axes.invert_yaxis()
    axes.legend(fontsize=8)
