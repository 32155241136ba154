"""Table 2: BLEU and time of every kind of normalization."""

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.intervals import Interval, median_interval, signed, spread, t_interval
from ...reporting.section import Section
from ..published import TABLE2
from ..results import Result, by_row
from ..row import Row
from ..row_styles import styles_of
from .differences import differences

MARGIN = 0.5  # BLEU; two kinds count as equal if the 90% interval of their difference lies within
_WIDTH = 8  # BLEU that the picture shows
_PAIRS = (("rmsnorm", "layernorm"), ("rmsnorm", "baseline"), ("layernorm", "baseline"))
_PUBLISHED = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "linestyle": "none"}

Scores = dict[str, list[float]]  # BLEU of each seed, by `dev` and test set


def section(results: Sequence[Result], times: dict[str, Any] | None) -> Section | None:
    """Returns the section of the rows of Table 2, or `None` without any.

    Args:
        results: The results so far.
        times: The output of `benchmarks/training.py --json`, or `None`.
    """
    rows = by_row(result for result in results if result.row.section == "table2")
    if not rows:
        return None
    scores = {row: _scores(done) for row, done in rows.items()}
    updates = times["updates"]["float32"] if times else {}
    cells = [_cells(row, found, updates) for row, found in scores.items()]
    log = next(iter(rows.values()))[0].log
    signature = next(iter(log["tests"].values()))["signature"]
    return Section(
        name="table2",
        title="Translation quality and speed (Table 2)",
        text=[
            f"BLEU: sacreBLEU `{signature}`, cased and detokenised, beam size 5. With several seeds, it is their mean "
            f"with the standard deviation (sd). {_tested(rows)}",
            *_on_options(rows),
            *_on_seeds(rows),
            *(_on_time(times, log["options"]) if times else []),
        ],
        columns=list(cells[0]),
        rows=[list(each.values()) for each in cells],
        data={"bleu": {row.name: found for row, found in scores.items()}, "times": times},
        plot=lambda figure: _plot(figure, scores, updates),
    )


def _scores(done: Sequence[Result]) -> Scores:
    tests = done[0].log["tests"]
    return {"dev": [each.dev for each in done]} | {test: [each.test(test) for each in done] for test in tests}


def _tested(rows: dict[Row, list[Result]]) -> str:
    """Says which checkpoint is tested, and names the runs whose best validation is not the last."""
    results = [each for done in rows.values() for each in done]
    early = [each for each in results if each.best["update"] < max(v["update"] for v in each.log["validations"])]
    told = "The model of the best validation is tested. The best validation is the last one"
    if not early:
        return f"{told} in every run."
    named = (f"{each.row.label}, seed {each.seed} (update {each.best['update']:,}{_loss(each)})" for each in early)
    return f"{told}, except for {'; '.join(named)}."


def _loss(result: Result) -> str:
    """Describes the dev loss of the tested checkpoint and of the last, if the log has them."""
    last = result.log["validations"][-1]
    if "valid_loss" not in last:
        return ""
    return f", dev loss {result.best['valid_loss']:.2f}; at the last validation {last['valid_loss']:.2f}"


def _on_options(rows: dict[Row, list[Result]]) -> list[str]:
    """Names the options in which rows differ from LayerNorm, or from the first row if LayerNorm is missing."""
    usual = next((row for row in rows if row.name == "layernorm"), next(iter(rows)))
    told = {row.label: differences(done[0], rows[usual][0]) for row, done in rows.items()}
    own = "; ".join(f"{label} has {options}" for label, options in told.items() if options)
    return [f"All rows have the options of {usual.label}, apart from the norm. Exceptions: {own}."] if own else []


def _on_seeds(rows: dict[Row, list[Result]]) -> list[str]:
    """Describes the differences between kinds over the seeds, on the first test set."""
    return [" ".join(told)] if (told := list(_differences(rows))) else []


def _differences(rows: dict[Row, list[Result]]) -> Iterator[str]:
    done = {row.name: {each.seed: each for each in found} for row, found in rows.items()}
    labels = {row.name: row.label for row in rows}
    for one, other in _PAIRS:
        seeds = sorted(done.get(one, {}).keys() & done.get(other, {}).keys())
        if len(seeds) < 2:
            continue
        test = next(iter(done[one][seeds[0]].log["tests"]))
        gains = [done[one][seed].test(test) - done[other][seed].test(test) for seed in seeds]
        yield (
            f"{labels[one]} minus {labels[other]} on {test}, paired over {len(seeds)} seeds: "
            f"{signed(t_interval(gains))} BLEU (95% interval). {_verdict(gains)}"
        )


def _verdict(gains: Sequence[float]) -> str:
    if t_interval(gains, 0.9).within(MARGIN):
        return f"They count as equal: the 90% interval lies within ±{MARGIN} BLEU."
    if t_interval(gains).excludes(0):
        return f"{len(gains)} seeds show a difference."
    return f"{len(gains)} seeds show neither a difference nor equality within ±{MARGIN} BLEU."


def _on_time(times: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """Describes how the seconds were measured, and compares the cost of the norms with the paper's."""
    updates, layernorm, baseline = times["updates"]["float32"], TABLE2["layernorm"], TABLE2["baseline"]
    return [
        f"Seconds per 1,000 updates come from `benchmarks/training.py` of commit {times['commit']} on "
        f"{_threads(times['threads'])}, with nothing else running. All kinds have the same options and take turns on "
        f"the same {len(times['widths'])} batches of this training text. The table has the median over the rounds and, "
        "in brackets, the quartiles. The saving against LayerNorm is the median of the rounds' ratios with its 95% "
        "bootstrap interval. The paper's seconds are the mean and standard deviation of three runs on one TITAN X, "
        "with embedding 512 and state 1024; ours "
        f"are {options['embedding_size']} and {options['state_size']}.",
        f"RMSNorm takes {_ratio(updates, 'rmsnorm', 'layernorm')} of LayerNorm's time here and "
        f"{TABLE2['rmsnorm'].seconds / layernorm.seconds:.2f} in the paper. {_on_saving(updates)} LayerNorm takes "
        f"{_ratio(updates, 'layernorm', 'none')} times the Baseline's time here and "
        f"{layernorm.seconds / baseline.seconds:.2f} times in the paper. So the norms take "
        f"{_share(updates, 'layernorm')} of an update with LayerNorm and {_share(updates, 'rmsnorm')} with RMSNorm; in "
        f"the paper {1 - baseline.seconds / layernorm.seconds:.0%} and "
        f"{1 - baseline.seconds / TABLE2['rmsnorm'].seconds:.0%}.",
        "A likely reason for the paper's larger shares, which was not measured: in its Nematus a norm is several "
        "operations, which a GPU starts one by one at every step of the recurrences. Here XLA compiles the loops.",
    ]


def _on_saving(updates: dict[str, Any]) -> str:
    saving = _saving(updates, "rmsnorm")
    if saving.excludes(0):
        return f"The saving of {saving.middle:.1%} is more than the noise of the rounds."
    return f"The saving of {saving.middle:.1%} is within the noise."


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def _ratios(updates: dict[str, Any], kind: str, other: str) -> np.ndarray:
    """Returns the ratio of the seconds of two kinds in each round."""
    return np.divide(updates[kind]["rounds"], updates[other]["rounds"])


def _ratio(updates: dict[str, Any], kind: str, other: str) -> str:
    found = median_interval(_ratios(updates, kind, other))
    return f"{found.middle:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _saving(updates: dict[str, Any], kind: str) -> Interval:
    """Returns the share of LayerNorm's time that a kind saves."""
    return median_interval(1 - _ratios(updates, kind, "layernorm"))


def _share(updates: dict[str, Any], kind: str) -> str:
    """Describes the share of an update that exceeds the Baseline's time in the same round."""
    found = median_interval(1 - _ratios(updates, "none", kind))
    return f"{found.middle:.0%} [{found.low:.0%}, {found.high:.0%}]"


def _cells(row: Row, found: Scores, updates: dict[str, Any]) -> dict[str, str]:
    """Returns the cells of a row by the heads of their columns."""
    paper = TABLE2.get(row.name)
    scores = {f"{name} BLEU": spread(values) for name, values in found.items()}
    published = {"paper: BLEU 2014, 2017": ", ".join(map(str, paper.bleu)) if paper else ""}
    quality = {"": row.label, "seeds": str(len(found["dev"])), **scores, **published}
    return {**quality, **_speed_cells(row, updates)} if updates else quality


def _speed_cells(row: Row, updates: dict[str, Any]) -> dict[str, str]:
    kind, paper, seconds, saving = row.normalization, TABLE2.get(row.name), "", ""
    if kind in updates:
        low, high = updates[kind]["seconds_quartiles"]
        seconds = f"{1e3 * updates[kind]['seconds']:.0f} [{1e3 * low:.0f}, {1e3 * high:.0f}]"
    if kind in updates and kind not in ("none", "layernorm"):
        found = _saving(updates, kind)
        saving = f"{found.middle:.1%} [{found.low:.1%}, {found.high:.1%}]"
    return {
        "s per 1,000 updates": seconds,
        "saving": saving,
        "paper: s per 1,000": f"{paper.seconds} (sd {paper.deviation:.3g})" if paper else "",
        "paper: saving": f"{paper.saving:.1%}" if paper and paper.saving else "",
    }


def _plot(figure: Figure, rows: dict[Row, Scores], updates: dict[str, Any]) -> None:
    figure.set(size_inches=(10, 2.2 + 0.5 * len(rows)), layout_engine="constrained")
    quality, *speed = figure.subplots(1, 2 if updates else 1, sharey=True, squeeze=False)[0]
    _draw_quality(quality, rows)
    for axes in speed:
        _draw_speed(axes, rows, updates)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


def _draw_quality(axes: Axes, rows: dict[Row, Scores]) -> None:
    """Draws dev and the first test set: every seed as a point, and a line at their mean."""
    marked = dict(zip(next(iter(rows.values())), "os", strict=False))
    for at, (row, style) in enumerate(styles_of(rows).items()):
        for (name, marker), shift in zip(marked.items(), (-0.15, 0.15), strict=True):
            values = rows[row][name]
            axes.plot(values, [at + shift] * len(values), marker, color=style.color, alpha=0.6)
            axes.plot([mean(values)] * 2, [at + shift - 0.12, at + shift + 0.12], color=style.color)
    for name, marker in marked.items():
        axes.plot([], [], marker, color="black", label=f"{name}, each seed")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    _narrow(axes, [(at, value) for at, found in enumerate(rows.values()) for name in marked for value in found[name]])
    axes.set_xlabel("BLEU; the bar is the mean")
    axes.set_title("quality", fontsize=10)


def _narrow(axes: Axes, points: Sequence[tuple[int, float]]) -> None:
    """Limits the axis to the best rows, and writes the BLEU of the other rows as text."""
    start = max(value for _, value in points) - _WIDTH
    inside = [value for _, value in points if value >= start]
    axes.set_xlim(min(inside) - 0.5, max(inside) + 0.5)
    for at in sorted({at for at, value in points if value < start}):
        beyond = " to ".join(sorted({f"{value:.1f}" for row, value in points if row == at}))
        axes.text(0.02, at, f"◄ {beyond}", transform=axes.get_yaxis_transform(), va="center", fontsize=9)


def _draw_speed(axes: Axes, rows: dict[Row, Scores], updates: dict[str, Any]) -> None:
    """Draws the median ratio to LayerNorm's time with its interval, and the published ratio."""
    axes.axvline(1, color="black", linewidth=0.6)
    for at, (row, style) in enumerate(styles_of(rows).items()):
        if row.normalization in updates:
            found = median_interval(_ratios(updates, row.normalization, "layernorm"))
            errors = [[found.middle - found.low], [found.high - found.middle]]
            axes.errorbar(found.middle, at, xerr=errors, fmt=style.marker, color=style.color, capsize=4)
        if row.name in TABLE2.keys() - {"layernorm"}:
            axes.plot(TABLE2[row.name].seconds / TABLE2["layernorm"].seconds, at, **_PUBLISHED)
    axes.plot([], [], label="published, other text and size", **_PUBLISHED)
    axes.set_xlabel("time of an update over LayerNorm's, with 95% interval")
    axes.set_title("speed", fontsize=10)
