"""How the time of an update splits, beside what the paper's seconds say of the norms."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..published import SECONDS
from ..section import Section
from .colours import COLOURS, LABELS

_PARTS = {"matmul": "matrix products", "softmax": "softmax", "rest": "the rest"}
_SHARED = ("matmul", "softmax")  # what is measured in every kind, and should be the same
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
        f"{_norms(measured)} How exact the split is shows where the three models are the same: their matrix products "
        f"and their softmax differ by up to {_disagreement(kinds):.1%} of the Baseline's update.",
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
    """Returns the most that products or softmax differ from the Baseline's, as a share of the Baseline's update."""
    base = kinds["none"]
    return max(abs(split[part] - base[part]) for split in kinds.values() for part in _SHARED) / base["total"]


def _row(kind: str, split: dict[str, float]) -> list[str]:
    cells = [f"{1e3 * split[part]:.1f} ms, {split[part] / split['total']:.1%}" for part in ("norm", *_PARTS)]
    return [LABELS[kind], *cells, f"{1e3 * split['total']:.1f} ms", f"{_published(kind):.1%}"]


def _plot(figure: Figure, kinds: dict[str, dict[str, float]]) -> None:
    figure.set_size_inches(9, 3.6)
    ours, published = figure.subplots(1, 2, width_ratios=[3, 2], sharey=True)
    for y, (kind, split) in enumerate(kinds.items()):
        shades = {**_SHADES, "norm": COLOURS[kind]}
        _bar(ours, y, {part: 1e3 * split[part] for part in shades}, shades)
        parts = {"others": SECONDS["none"], "norm": SECONDS[kind] - SECONDS["none"]}
        _bar(published, y, parts, {"others": "white", "norm": COLOURS[kind]})
    ours.set(xlabel="milliseconds per update, ours", yticks=range(len(kinds)), yticklabels=map(LABELS.get, kinds))
    published.set(xlabel="seconds per 1,000 updates, published")
    ours.invert_yaxis()
    shown = [(_PARTS[part], _SHADES[part]) for part in _PARTS]
    shown += [(f"norm: {LABELS[kind]}", COLOURS[kind]) for kind in kinds if kind != "none"]
    shown += [("not split", "white")]
    handles = [Patch(facecolor=colour, edgecolor="black", label=label) for label, colour in shown]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), columnspacing=1.2, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.9))


def _bar(axes: Axes, y: int, parts: dict[str, float], colours: dict[str, str]) -> None:
    """Draws the parts of a kind's time, one after the other, and tells the share of the norm, if there is any."""
    left = 0.0
    for part, time in parts.items():
        axes.barh(y, time, left=left, color=colours[part], edgecolor="black", linewidth=0.6)
        left += time
    if parts["norm"]:
        axes.text(left, y, f" {parts['norm'] / left:.0%}", va="center")
    axes.set_xlim(0, max(axes.get_xlim()[1], 1.15 * left))
    axes.spines[["top", "right"]].set_visible(False)
