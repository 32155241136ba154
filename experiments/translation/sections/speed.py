"""Seconds of an update with every kind of normalization (Table 2)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ...reporting.intervals import Interval, median_interval
from ...reporting.section import Claim, Section
from ..measure.seconds import AGAIN
from ..published import RESULTS, TABLE2, TABLES
from ..results import Result
from ..row import Row
from ..row_styles import PUBLISHED, styles_of

Updates = Mapping[str, Any]  # by kind, as `benchmarks/training.py --json` writes them


def section(results: Sequence[Result], times: Mapping[str, Any] | None) -> Section | None:
    """Returns the section of the seconds of Table 2's rows, or `None` without any or without LayerNorm's second model.

    Args:
        results: The results so far.
        times: The output of `benchmarks/training.py --json`, or `None`.
    """
    updates = times["updates"]["float32"] if times else {}
    rows = _first_of_kinds(each for each in results if each.row.section == "main" and each.row.normalization in updates)
    if not rows or not {"layernorm", AGAIN} <= updates.keys():
        return None
    return Section(
        name="speed",
        title=f"Seconds of an update ({TABLES[next(iter(rows)).model_type]})",
        text=[
            _on_method(times, next(iter(rows.values())).log["options"], {each.log["commit"] for each in results}),
            *(_on_cost(updates) if next(iter(rows)).model_type == "rnn" else []),
        ],
        columns=["", "s per 1,000 updates", "saving", "paper: s per 1,000", "paper: saving"],
        rows=[_cells(row, updates) for row in rows],
        data=times,
        plot=lambda figure: _plot(figure, list(rows), updates),
        claims=[_claim(row, updates) for row in rows if row.name in RESULTS and RESULTS[row.name].saving],
    )


def _first_of_kinds(results: Iterable[Result]) -> dict[Row, Result]:
    """Returns the first result of the first row of each kind: seconds are measured by kind."""
    found: dict[str, Result] = {}
    for each in results:
        found.setdefault(each.row.normalization, each)
    return {each.row: each for each in found.values()}


def _on_method(times: Mapping[str, Any], options: Mapping[str, Any], trained: Collection[str]) -> str:
    other = "" if times["commit"] in trained else ", which is not that of the trainings,"
    rounds = len(times["updates"]["float32"]["layernorm"]["rounds"])
    return (
        f"Seconds per 1,000 updates come from `benchmarks/training.py` of commit {times['commit']}{other} on "
        f"{_threads(times['threads'])}. XLA compiles the update. All kinds have the same options and take turns on the "
        f"same {len(times['widths'])} batches of this training text. The table has the median over the {rounds} rounds "
        "and, in parentheses, the range from the first quartile to the third. The saving against LayerNorm is the "
        f"median of the rounds' ratios with its 95% bootstrap interval.{_on_noise(times)} The paper's seconds are the "
        "mean and standard deviation of three runs on one TITAN X, with embedding 512 and state 1024; ours are "
        f"{options['embedding_size']} and {options['state_size']}."
    )


def _on_cost(updates: Updates) -> list[str]:
    """Compares the cost of the norms with the paper's."""
    if not {"none", "rmsnorm"} <= updates.keys():
        return []
    layernorm, baseline, rmsnorm = (TABLE2[name].seconds for name in ("layernorm", "baseline", "rmsnorm"))
    return [
        f"LayerNorm takes {_ratio(updates, 'layernorm', 'none')} times the time of no norm here and "
        f"{layernorm / baseline:.2f} times in the paper. So the norms take {_share(updates, 'layernorm')} of an update "
        f"with LayerNorm and {_share(updates, 'rmsnorm')} with RMSNorm; in the paper {1 - baseline / layernorm:.0%} "
        f"and {1 - baseline / rmsnorm:.0%}. The paper's Nematus runs plain operations; docs/performance.md "
        "has times of both, by the width of the model."
    ]


def _on_noise(times: Mapping[str, Any]) -> str:
    updates = times["updates"]["float32"]
    return (
        f" A second model with LayerNorm shows the noise: it takes {_ratio(updates, AGAIN, 'layernorm')} times the "
        "time of the first. A kind is faster if the interval of its ratio lies below 1 and below that of this model."
    )


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def _ratios(updates: Updates, kind: str, other: str) -> np.ndarray:
    """Returns the ratio of the seconds of two kinds in each round."""
    return np.divide(updates[kind]["rounds"], updates[other]["rounds"])


def _ratio(updates: Updates, kind: str, other: str) -> str:
    found = median_interval(_ratios(updates, kind, other))
    return f"{found.middle:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _saving(updates: Updates, kind: str) -> Interval:
    """Returns the share of LayerNorm's time that a kind saves."""
    return median_interval(1 - _ratios(updates, kind, "layernorm"))


def _share(updates: Updates, kind: str) -> str:
    """Describes the share of an update that exceeds the time of no norm in the same round."""
    return _percent(median_interval(1 - _ratios(updates, "none", kind)), 0)


def _percent(found: Interval, digits: int = 1) -> str:
    middle, low, high = (f"{each:.{digits}%}" for each in found)
    return f"{middle} [{low}, {high}]"


def _claim(row: Row, updates: Updates) -> Claim:
    found, published = _saving(updates, row.normalization), RESULTS[row.name].saving
    return Claim(
        f"{TABLES[row.model_type]}: an update with {row.label} takes less time than with LayerNorm",
        f"{published:.1%} less",
        f"{_percent(found)} less, one run",
        _verdict(found, published, _saving(updates, AGAIN).high),
    )


def _verdict(found: Interval, published: float, noise: float) -> str:
    if found.low <= max(0, noise):
        return "not borne out: within the noise" if found.high >= 0 else "not borne out: it takes more"
    if found.high < published:
        return "a smaller saving, in one run"
    return "borne out" if found.low <= published else "borne out: a larger saving"


def _label(row: Row) -> str:
    """Returns the name of a kind: a row's own recipe does not matter here."""
    return "no norm" if row.kind == "none" else row.label


def _cells(row: Row, updates: Updates) -> list[str]:
    kind, paper = row.normalization, RESULTS.get(row.name)
    low, high = updates[kind]["seconds_quartiles"]
    return [
        _label(row),
        f"{1e3 * updates[kind]['seconds']:.0f} ({1e3 * low:.0f} to {1e3 * high:.0f})",
        "" if kind in ("none", "layernorm") else _percent(_saving(updates, kind)),
        f"{paper.seconds} (sd {paper.deviation:.3g})" if paper else "",
        f"{paper.saving:.1%}" if paper and paper.saving else "",
    ]


def _plot(figure: Figure, rows: Sequence[Row], updates: Updates) -> None:
    """Draws the median ratio to LayerNorm's time with its interval, and the published ratio."""
    figure.set(size_inches=(9, 1.8 + 0.4 * len(rows)), layout_engine="constrained")
    axes = figure.subplots()
    axes.axvline(1, color="black", linewidth=0.6)
    for at, (row, style) in enumerate(styles_of(rows).items()):
        found = median_interval(_ratios(updates, row.normalization, "layernorm"))
        errors = [[found.middle - found.low], [found.high - found.middle]]
        axes.errorbar(found.middle, at, xerr=errors, fmt=style.marker, color=style.color, capsize=4)
        if row.name in RESULTS and row.kind != "layernorm":
            layernorm = "layernorm" if row.model_type == "rnn" else "post-layernorm"
            axes.plot(RESULTS[row.name].seconds / RESULTS[layernorm].seconds, at, **PUBLISHED)
    axes.errorbar([], [], xerr=[], fmt="o", color="black", capsize=4, label="ours, with 95% interval")
    axes.plot([], [], label="published, other text, size and machine", **PUBLISHED)
    axes.set(xlabel="time of an update over LayerNorm's", ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), list(map(_label, rows)))
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
