"""How the time of an update splits, beside what the paper's seconds say of the norms."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..published import SECONDS
from ..section import Section
from .colours import COLOURS, LABELS

_PARTS = {"matmul": "matrix products", "softmax": "softmax", "rest": "the rest"}
_SHADES = {"matmul": "#404040", "softmax": "#8C8C8C", "rest": "#D9D9D9"}  # of what has no kind


def section(measured: dict[str, Any]) -> Section:
    """Returns the section of what `experiments.time_split.measure` returned."""
    kinds = measured["kinds"]
    widths = measured["widths"]
    text = [
        f"One update on batches of the training text ({len(widths)}, padded to {min(widths)} to {max(widths)} tokens), "
        f"on {_threads(measured['threads'])} of the processor. The norms' time is what it takes longer than that of "
        "the Baseline, in turn on the same batches: compiled by XLA, a norm shares its loops with what stands beside "
        "it, and no profile can divide these. So it holds all that a norm brings with it, loops that it keeps apart "
        "and memory that its gradient reads again.",
        "Matrix products and softmax are their share in the profiles of further updates, each operation's time counted "
        "where it ran: products with the few operations that are fused with them, but without sums along rows that are "
        "written as products with a vector; the softmax over the words of the target, that of the attention, and "
        "the gradients of both, where most of a fusion is theirs. The rest is what is left: activations, dropout, "
        "attention energies, copies, the start of operations, Adam.",
        f"{_norms(measured)} The same model but for its norms, the three should agree in everything else: they do to "
        f"{_disagreement(kinds):.1%} of the Baseline's update, which is how exact the split is.",
    ]
    return Section(
        name="time_split",
        title="How the time of an update splits",
        text=text,
        columns=["", "norm", *_PARTS.values(), "one update", "norm, by the paper's seconds"],
        rows=[_row(kind, split) for kind, split in kinds.items()],
        data=measured,
        plot=lambda figure: _plot(figure, kinds),
    )


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def _norms(measured: dict[str, Any]) -> str:
    """Tells what the norms take, and how much more that is of the paper's time."""
    said = []
    for kind, split in measured["kinds"].items():
        if kind != "none":
            low, high = (1e3 * seconds for seconds in measured["norm_quartiles"][kind])
            said.append(
                f"{LABELS[kind]}'s norms take {split['norm'] / split['total']:.1%} of the update (half of the rounds "
                f"lie between {low:.1f} and {high:.1f} ms); by the paper's seconds, on a GPU, {_published(kind):.1%}."
            )
    return " ".join(said)


def _published(kind: str) -> float:
    return 1 - SECONDS["none"] / SECONDS[kind]


def _disagreement(kinds: dict[str, dict[str, float]]) -> float:
    """Returns the most that a part differs from the Baseline's, as a share of the Baseline's update."""
    base = kinds["none"]
    return max(abs(split[part] - base[part]) for split in kinds.values() for part in _PARTS) / base["total"]


def _row(kind: str, split: dict[str, float]) -> list[str]:
    cells = [f"{1e3 * split[part]:.1f} ms, {split[part] / split['total']:.1%}" for part in ("norm", *_PARTS)]
    return [LABELS[kind], *cells, f"{1e3 * split['total']:.1f} ms", f"{_published(kind):.1%}"]


def _plot(figure: Figure, kinds: dict[str, dict[str, float]]) -> None:
    figure.set_size_inches(9, 3.6)
    ours, published = figure.subplots(1, 2, width_ratios=[3, 2], sharey=True)
    left = dict.fromkeys(kinds, 0.0)
    for part, label in _PARTS.items():
        times = {kind: 1e3 * split[part] for kind, split in kinds.items()}
        _bars(ours, times, left, dict.fromkeys(kinds, _SHADES[part]), label)
    _bars(ours, {kind: 1e3 * split["norm"] for kind, split in kinds.items()}, left, COLOURS)
    ours.set(xlabel="milliseconds per update, ours", xlim=(0, 1.12 * max(left.values())))
    left = dict.fromkeys(kinds, 0.0)
    _bars(published, dict.fromkeys(kinds, SECONDS["none"]), left, dict.fromkeys(kinds, "white"), "all but the norms")
    _bars(published, {kind: SECONDS[kind] - SECONDS["none"] for kind in kinds}, left, COLOURS)
    published.set(xlabel="seconds per 1,000 updates, published", xlim=(0, 1.18 * max(left.values())))
    for axes, share in ((ours, lambda kind: kinds[kind]["norm"] / kinds[kind]["total"]), (published, _published)):
        for y, kind in enumerate(kinds):
            if kind != "none":
                axes.text(
                    axes.get_xlim()[1] * 0.99, y, f"{share(kind):.0%}", ha="right", va="center", color=COLOURS[kind]
                )
        axes.spines[["top", "right"]].set_visible(False)
    ours.invert_yaxis()
    handles = [each for axes in (ours, published) for each in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.9))


def _bars(axes: Axes, times: dict[str, float], left: dict[str, float], colours: dict[str, str], label="") -> None:
    """Draws one part of every bar, from where the last one ended."""
    labels = [LABELS[kind] for kind in times]
    colour = [colours[kind] for kind in times]
    axes.barh(labels, list(times.values()), left=list(left.values()), color=colour, edgecolor="black", linewidth=0.6)
    if label:
        axes.barh([], [], color=colour[0], edgecolor="black", linewidth=0.6, label=label)
    left.update({kind: left[kind] + time for kind, time in times.items()})
