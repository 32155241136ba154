"""The share of the mean in the input of every norm, before and after the training."""

from collections.abc import Mapping, Sequence
from statistics import mean

from matplotlib.figure import Figure

from ...reporting.section import Section
from ..results import Result, by_row
from ..row import Row
from ..row_styles import styles_of

Shares = Mapping[str, Sequence[float]]  # of each seed, by the path of the norm


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the rows that were measured, or `None` without any."""
    rows = by_row(result for result in results if "mean_share" in result.log)
    if not rows:
        return None
    found = {row: {when: _shares(done, when) for when in ("first", "last")} for row, done in rows.items()}
    return Section(
        name="mean_share",
        title="The share of the mean",
        text=[
            "E[mean(a)²] / E[mean(a²)] of the input a of each norm, over its units: the part of the mean square that "
            "LayerNorm's centring removes, measured on sentences of the dev set, with the reference's words. The table "
            "has the mean over the norms and, in brackets, the norms with the least and the largest share. The picture "
            "has every norm after the training; a line joins the seeds."
        ],
        columns=["", "seeds", "before the training", "after the training"],
        rows=[
            [row.label, str(len(rows[row])), *(_cell(shares) for shares in each.values())]
            for row, each in found.items()
        ],
        data={row.name: each for row, each in found.items()},
        plot=lambda figure: _plot(figure, {row: each["last"] for row, each in found.items()}),
    )


def _shares(done: Sequence[Result], when: str) -> dict[str, list[float]]:
    paths = done[0].log["mean_share"][when]
    return {path: [result.log["mean_share"][when][path] for result in done] for path in paths}


def _cell(shares: Shares) -> str:
    means = [mean(seeds) for seeds in shares.values()]
    return f"{mean(means):.1%} [{min(means):.1%}, {max(means):.1%}]"


def _plot(figure: Figure, rows: Mapping[Row, Shares]) -> None:
    paths = list(dict.fromkeys(path for shares in rows.values() for path in shares))
    figure.set(size_inches=(9.5, 1.8 + 0.3 * len(paths)), layout_engine="constrained")
    axes = figure.subplots()
    for number, (row, style) in enumerate(styles_of(rows).items()):
        shift = 0.7 * ((number + 0.5) / len(rows) - 0.5)
        at = [paths.index(path) + shift for path in rows[row]]
        means = [mean(seeds) for seeds in rows[row].values()]
        axes.plot(means, at, style.marker, color=style.color, markersize=4, label=row.label)
        axes.hlines(at, list(map(min, rows[row].values())), list(map(max, rows[row].values())), color=style.color)
    axes.set(xscale="log", xlabel="share of the mean, after the training", ylim=(len(paths) - 0.5, -0.5))
    axes.set_yticks(range(len(paths)), paths, fontsize=8)
    axes.grid(axis="y", color="#E4E4E4")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
