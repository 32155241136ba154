"""Table 2: BLEU and time of every kind of normalization."""

from collections.abc import Sequence
from statistics import mean, median, quantiles
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
_PUBLISHED = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "linestyle": "none"}


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
        f"{TABLE2['layernorm']['seconds'][0] / TABLE2['none']['seconds'][0]:.2f} times there. Where the time of an "
        "update goes stands below."
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
    figure.set(size_inches=(9, 4.2), layout_engine="constrained")
    quality, speed = figure.subplots(1, 2, sharey=True)
    dev, test = list(next(iter(rows.values())))[:2]
    for at, (row, bleu) in enumerate(rows.items()):
        colour = COLOURS.get(row.kind, _OTHER)
        _draw_seeds(quality, at - 0.15, bleu[dev], "o", colour)
        _draw_seeds(quality, at + 0.15, bleu[test], "s", colour)
        if row.kind in updates:
            _draw_time(speed, at, updates[row.kind], updates["layernorm"], colour)
        if row.kind in TABLE2:
            quality.plot(TABLE2[row.kind]["bleu"][0], at, **_PUBLISHED)
            speed.plot(1 - _published_saving(row.kind), at, **_PUBLISHED)
    quality.set_yticks(range(len(rows)), [row.label for row in rows])
    quality.invert_yaxis()
    quality.set_xlabel("BLEU")
    speed.set_xlabel("time of an update over LayerNorm's")
    for marker, label in (("o", f"{dev}, each seed"), ("s", f"{test}, each seed")):
        quality.plot([], [], marker, color="black", label=label)
    quality.plot([], [], label="published: newstest2014; time", **_PUBLISHED)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)


def _draw_seeds(axes: Axes, at: float, values: Sequence[float], marker: str, colour: str) -> None:
    """Draws every seed as a point, and a line at their mean."""
    axes.plot(values, [at] * len(values), marker, color=colour, alpha=0.6)
    axes.plot([mean(values)] * 2, [at - 0.12, at + 0.12], color=colour)


def _draw_time(axes: Axes, at: int, entry: dict[str, Any], layernorm: dict[str, Any], colour: str) -> None:
    """Draws a bar of the median ratio over the rounds, and a line between the quartiles."""
    low, middle, high = quantiles((a / b for a, b in zip(entry["rounds"], layernorm["rounds"], strict=True)), n=4)
    axes.barh(at, middle, xerr=[[middle - low], [high - middle]], color=colour, capsize=3)
