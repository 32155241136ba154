"""The section of the share of the mean in the input of every norm, before and during a training."""

from collections.abc import Mapping, Sequence
from statistics import mean

from matplotlib.figure import Figure

from .section import Section
from .styles import Style

Shares = Mapping[str, Mapping[str, float]]  # of each norm, by when it was measured


def mean_share_section(
    rows: Mapping[str, Sequence[Shares]], styles: Mapping[str, Style], over: str, text: str
) -> Section | None:
    """Returns the section, or `None` without any rows.

    Args:
        rows: The shares of each seed, by the label of a row; in order of time.
        styles: The style of each row by its label.
        over: What the mean runs over, in words.
        text: Where it was measured, in sentences.
    """
    if not rows:
        return None
    times = list(dict.fromkeys(when for seeds in rows.values() for when in seeds[0]))
    return Section(
        name="mean_share",
        title="How much of a norm's input is its mean",
        text=[
            f"E[mean(a)²] / E[mean(a²)] of the input a of each norm, with the means over {over}: the part of the mean "
            f"square that LayerNorm's centring removes and RMSNorm keeps. {text} The table has the mean over the norms "
            "and the seeds, and the range of the norms at the end. In the picture, a point is a norm at the end, the "
            "mean of the seeds, and a bar the mean over the norms."
        ],
        columns=["", "seeds", *times, "norms, at the end"],
        rows=[[label, str(len(seeds)), *_cells(seeds, times)] for label, seeds in rows.items()],
        data=rows,
        plot=lambda figure: _plot(figure, {label: _last(seeds) for label, seeds in rows.items()}, styles),
    )


def _last(seeds: Sequence[Shares]) -> dict[str, list[float]]:
    """Returns the last shares of each seed, by norm."""
    last = [shares[list(shares)[-1]] for shares in seeds]
    return {norm: [each[norm] for each in last] for norm in last[0]}


def _cells(seeds: Sequence[Shares], times: Sequence[str]) -> list[str]:
    found = {when: [shares[when].values() for shares in seeds if when in shares] for when in times}
    means = [f"{mean(map(mean, each)):.1%}" if len(each) == len(seeds) else "" for each in found.values()]
    norms = [mean(values) for values in _last(seeds).values()]
    return [*means, f"{min(norms):.1%} to {max(norms):.1%}"]


def _plot(figure: Figure, rows: Mapping[str, Mapping[str, Sequence[float]]], styles: Mapping[str, Style]) -> None:
    figure.set(size_inches=(9.5, 1.4 + 0.4 * len(rows)), layout_engine="constrained")
    axes = figure.subplots()
    for at, (label, shares) in enumerate(rows.items()):
        found = list(map(mean, shares.values()))
        axes.plot(found, [at] * len(found), "o", color=styles[label].color, alpha=0.4, markeredgewidth=0)
        axes.plot(mean(found), at, "|", color="black", markersize=14, markeredgewidth=2)
    axes.set(xscale="log", xlabel="share of the mean: each norm, and the mean over the norms")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.grid(axis="x", color="#E4E4E4")
