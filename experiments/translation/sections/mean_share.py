"""The share of the mean in the input of every norm, before and during the training."""

from collections.abc import Mapping, Sequence
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ...reporting.styles import Style
from ..results import Result, by_row
from ..row import Row
from ..row_styles import styles_of

# Older logs have these of models without a norm too. Post-norm models have no norm there.
_ENDS = ("encoder.final_norm", "decoder.final_norm")

Shares = Mapping[str, Sequence[float]]  # of each seed, by the path of the norm
ByUpdate = Mapping[int, Shares]


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the rows that were measured, or `None` without any."""
    rows = by_row(result for result in results if "mean_share" in result.log)
    if not rows:
        return None
    found = {row: _by_update(done) for row, done in rows.items()}
    updates = sorted({update for each in found.values() for update in each})
    return Section(
        name="mean_share",
        title="How much of a norm's input is its mean",
        text=[
            "E[mean(a)²] / E[mean(a²)] of the input a of each norm, over its units: the part of the mean square that "
            "LayerNorm's centring removes and RMSNorm keeps. Whether it matters, their difference in BLEU shows. It is "
            "measured on sentences of the dev set, with the reference's words, after N updates. A row without a norm "
            "is measured where its norms would be. The table has the mean over the norms and the seeds, and its last "
            "column the range of the norms after the last update. The picture has this mean by update and every norm "
            "after the last; lines and shades span the seeds. Seeds that were not measured are left out.",
            *_on_last(found),
        ],
        columns=["", "seeds", *(f"N = {update:,}" for update in updates), "norms, last"],
        rows=[[row.label, str(len(rows[row])), *_cells(each, updates)] for row, each in found.items()],
        data={row.name: each for row, each in found.items()},
        plot=lambda figure: _plot(figure, found),
    )


def _by_update(done: Sequence[Result]) -> ByUpdate:
    """Returns the shares after each number of updates that all seeds have."""
    logs = [result.log["mean_share"] for result in done]
    left_out = _ENDS if done[0].log["options"].get("transformer_norm_position") == "post" else ()
    return {
        int(update): {path: [log[update][path] for log in logs] for path in paths if path not in left_out}
        for update, paths in logs[0].items()
        if all(update in log for log in logs)
    }


def _cells(shares: ByUpdate, updates: Sequence[int]) -> list[str]:
    means = [f"{mean(_over_norms(shares[update])):.1%}" if update in shares else "" for update in updates]
    last = [mean(seeds) for seeds in shares[max(shares)].values()]
    return [*means, f"{min(last):.1%} to {max(last):.1%}"]


def _on_last(rows: Mapping[Row, ByUpdate]) -> list[str]:
    """Says what centring removes, or would remove, at the end, for LayerNorm and RMSNorm."""
    shares = {row: each[max(each)] for row, each in rows.items() if row.kind in ("layernorm", "rmsnorm")}
    return [
        f"{row.label}: after the last update, the mean makes up {mean(_over_norms(found)):.1%} of the mean square, on "
        f"average over the norms, and {max(map(mean, found.values())):.1%} in the norm where it is largest."
        for row, found in shares.items()
    ]


def _over_norms(shares: Shares) -> list[float]:
    """Returns the mean over the norms of each seed."""
    return [mean(seed) for seed in zip(*shares.values(), strict=True)]


def _plot(figure: Figure, rows: Mapping[Row, ByUpdate]) -> None:
    last = {row: shares[max(shares)] for row, shares in rows.items()}
    paths = list(dict.fromkeys(path for shares in last.values() for path in shares))
    figure.set(size_inches=(12, 1.8 + 0.3 * len(paths)), layout_engine="constrained")
    curves, norms = figure.subplots(1, 2, width_ratios=[2, 3])
    for number, (row, style) in enumerate(styles_of(rows).items()):
        by_seed = [_over_norms(shares) for shares in rows[row].values()]
        curves.plot(list(rows[row]), list(map(mean, by_seed)), f"{style.marker}-", color=style.color, label=row.label)
        curves.fill_between(
            list(rows[row]), list(map(min, by_seed)), list(map(max, by_seed)), color=style.color, alpha=0.2
        )
        _draw_norms(norms, last[row], paths, 0.7 * ((number + 0.5) / len(rows) - 0.5), style)
    curves.set(xlabel="updates", ylabel="share of the mean, over all norms", ylim=(0, None))
    norms.set(xscale="log", xlabel="share of the mean, after the last update", ylim=(len(paths) - 0.5, -0.5))
    norms.set_yticks(range(len(paths)), paths, fontsize=8)
    norms.grid(axis="y", color="#E4E4E4")
    figure.legend(*curves.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)


def _draw_norms(axes: Axes, shares: Shares, paths: Sequence[str], shift: float, style: Style) -> None:
    """Draws the mean of the seeds of each norm, and a line from the least to the largest."""
    at = [paths.index(path) + shift for path in shares]
    axes.plot([mean(seeds) for seeds in shares.values()], at, style.marker, color=style.color, markersize=4)
    axes.hlines(at, list(map(min, shares.values())), list(map(max, shares.values())), color=style.color)
