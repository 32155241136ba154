"""How the time of an update splits, beside what the paper's seconds say of the norms."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..published import TABLE2
from ..rows import table2
from ..section import Section
from .colours import COLOURS

_PARTS = {"matmul": "matrix products", "softmax": "softmax", "rest": "the rest"}
_SHADES = {"matmul": "#404040", "softmax": "#8C8C8C", "rest": "#D9D9D9"}  # of what has no kind
_ROWS = {row.kind: row for row in table2.ROWS}

Split = dict[str, float]  # seconds of each part of an update, and of all


def section(split: dict[str, Any], times: dict[str, Any]) -> Section:
    """Returns the section of the parts of an update's time.

    Args:
        split: What `experiments.time_split` wrote.
        times: What `benchmarks/training.py --json` wrote.
    """
    updates = times["updates"]["float32"]
    norms = {kind: _norm(updates, kind) for kind in split["shares"]}
    kinds = {kind: _split(shares, norms[kind][1], updates[kind]["seconds"]) for kind, shares in split["shares"].items()}
    widths = split["widths"]
    text = [
        "One update takes the seconds of Table 2. The norms' time is what it takes longer than the Baseline's, the "
        "median over the rounds: compiled by XLA, a norm shares its loops with what stands beside it, and no profile "
        "can divide these. So it holds all that a norm brings with it, loops that it keeps apart and memory that its "
        "gradient reads again.",
        f"Matrix products and softmax are their shares in profiles of other updates, on {len(widths)} batches of the "
        f"training text, padded to {min(widths)} to {max(widths)} tokens. Each operation's time is counted where it "
        "ran: products with the few operations that are fused with them, but without sums along rows that are written "
        "as products with a vector; the softmax over the words of the target, that of the attention, and the gradients "
        "of both, where most of a fusion is theirs. The rest is what is left: activations, dropout, attention "
        "energies, copies, the start of operations, Adam.",
        " ".join(_told(kind, kinds[kind], norms[kind]) for kind in kinds if kind != "none")
        + " How exact the split is shows where the models are the same: their matrix products and their softmax differ "
        f"by up to {_disagreement(kinds):.1%} of the Baseline's update.",
        "The paper's larger shares have a likely reason: in its Nematus a norm is several operations, and a GPU starts "
        "them one by one at every step of the recurrences, for little work each. Centring is some of them. Here "
        "all of these are loops of one compiled program, which start at little cost.",
    ]
    return Section(
        name="time_split",
        title="How the time of an update splits",
        text=text,
        columns=["", "norm", *_PARTS.values(), "one update", "norm, by the paper's seconds"],
        rows=[_row(kind, parts) for kind, parts in kinds.items()],
        data={"measured": split, "kinds": kinds, "norm_quartiles": {kind: [q[0], q[2]] for kind, q in norms.items()}},
        plot=lambda figure: _plot(figure, kinds),
    )


def _norm(updates: dict[str, Any], kind: str) -> list[float]:
    """Returns the quartiles over the rounds of what an update takes longer than the Baseline's."""
    return np.quantile(np.subtract(updates[kind]["rounds"], updates["none"]["rounds"]), [0.25, 0.5, 0.75]).tolist()


def _split(shares: dict[str, float], norm: float, total: float) -> Split:
    parts = {"norm": norm} | {part: share * total for part, share in shares.items()}
    return {**parts, "rest": total - sum(parts.values()), "total": total}


def _told(kind: str, parts: Split, norm: list[float]) -> str:
    """Tells what the norms take, and how much more that is of the paper's time."""
    return (
        f"{_ROWS[kind].label}'s norms take {parts['norm'] / parts['total']:.1%} of the update (half of the rounds lie "
        f"between {1e3 * norm[0]:.1f} and {1e3 * norm[2]:.1f} ms); by the paper's seconds, on a GPU, "
        f"{1 - _published('none') / _published(kind):.1%}."
    )


def _published(kind: str) -> float:
    return TABLE2[_ROWS[kind].name].seconds


def _disagreement(kinds: dict[str, Split]) -> float:
    """Returns the most that products or softmax differ from the Baseline's, as a share of the Baseline's update."""
    base = kinds["none"]
    return (
        max(abs(parts[name] - base[name]) for parts in kinds.values() for name in ("matmul", "softmax")) / base["total"]
    )


def _row(kind: str, parts: Split) -> list[str]:
    cells = [f"{1e3 * parts[name]:.1f} ms, {parts[name] / parts['total']:.1%}" for name in ("norm", *_PARTS)]
    published = f"{1 - _published('none') / _published(kind):.1%}"
    return [_ROWS[kind].label, *cells, f"{1e3 * parts['total']:.1f} ms", published]


def _plot(figure: Figure, kinds: dict[str, Split]) -> None:
    figure.set(size_inches=(9, 3.6), layout_engine="constrained")
    ours, published = figure.subplots(1, 2, width_ratios=[3, 2], sharey=True)
    for y, (kind, split) in enumerate(kinds.items()):
        shades = {**_SHADES, "norm": COLOURS[kind]}
        _bar(ours, y, {part: 1e3 * split[part] for part in shades}, shades)
        parts = {"others": _published("none"), "norm": _published(kind) - _published("none")}
        _bar(published, y, parts, {"others": "white", "norm": COLOURS[kind]})
    ours.set(xlabel="milliseconds per update, ours", yticks=range(len(kinds)))
    ours.set_yticklabels([_ROWS[kind].label for kind in kinds])
    published.set(xlabel="seconds per 1,000 updates, published")
    ours.invert_yaxis()
    shown = [(_PARTS[part], _SHADES[part]) for part in _PARTS]
    shown += [(f"norm: {_ROWS[kind].label}", COLOURS[kind]) for kind in kinds if kind != "none"]
    shown += [("not split", "white")]
    handles = [Patch(facecolor=colour, edgecolor="black", label=label) for label, colour in shown]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), columnspacing=1.2, frameon=False)


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
