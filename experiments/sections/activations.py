"""Mean and standard deviation of the decoder's recurrent activations by position, beside the paper's Table 5."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..published import ACTIVATIONS
from ..section import Section
from .colours import COLOURS, LABELS


def section(measured: dict[str, dict[str, Any]]) -> Section:
    """Returns the section of what `experiments.activations` measured, given by kind of normalization."""
    published = {kind: ACTIVATIONS[kind] for kind in measured if kind in ACTIVATIONS}
    any_kind = next(iter(measured.values()))
    text = [
        "Hidden-to-hidden is taken to be what the decoder's GRU makes of its state before it adds what it makes of its "
        "input: N(h U), for both gates and the proposal, after the norm with its gain (and LayerNorm's offset) and "
        "before the nonlinearity; for the Baseline N does nothing. The conditional GRU has two such steps. Compared "
        "with the paper is the first, which gets the state from the position before and has no bias on this side; the "
        "second, after the attention, has its biases within N, and is shown too.",
        "Mean and standard deviation are over the units, at each position of each sentence, and are averaged over the "
        f"{any_kind['tokens'][-1]:,} target positions of the {any_kind['tokens'][0]:,} sentences of the dev set, of "
        "which a sentence's end is one and padding is none. The words before a position are those of the reference.",
        f"Over the single positions the standard deviation is {_ranges(measured)}; "
        f"in the paper it is {_ranges(published)}.",
    ]
    return Section(
        name="activations",
        title="The decoder's hidden-to-hidden activations (Table 5)",
        text=text,
        columns=["mean (standard deviation)", *(_position(name) for name in any_kind["positions"])],
        rows=[row for kind, figures in measured.items() for row in _rows(kind, figures)],
        data=measured,
        plot=lambda figure: _plot(figure, {"ours, first GRU": measured, "published": published}),
    )


def _position(name: str) -> str:
    return "all positions" if name == "all" else f"position {name}"


def _rows(kind: str, figures: dict[str, Any]) -> list[list[str]]:
    """Returns our rows of a kind, and the published one where there is one."""
    parts = {"first GRU": figures, "second GRU": figures["second"]}
    if kind in ACTIVATIONS:
        parts["published"] = ACTIVATIONS[kind]
    return [[f"{LABELS[kind]}, {name}", *_cells(part)] for name, part in parts.items()]


def _cells(figures: dict[str, Any]) -> list[str]:
    # Adding 0 makes a zero of -0.00.
    return [
        f"{round(mean, 2) + 0.0:.2f} ({std:.2f})" for mean, std in zip(figures["mean"], figures["std"], strict=True)
    ]


def _ranges(kinds: dict[str, dict[str, Any]]) -> str:
    """Tells between what the standard deviations of the single positions are, for each kind."""
    stds = {LABELS[kind]: figures["std"][:-1] for kind, figures in kinds.items()}
    return ", ".join(f"{min(each):.2f} to {max(each):.2f} for {label}" for label, each in stds.items())


def _plot(figure: Figure, panels: dict[str, dict[str, dict[str, Any]]]) -> None:
    figure.set(size_inches=(9, 4.4), layout_engine="constrained")
    for axes, (title, kinds) in zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True):
        axes.axhline(0, color="black", linewidth=0.5)
        for number, (kind, figures) in enumerate(kinds.items()):
            _draw(axes, kind, figures, shift=0.15 * (number - (len(kinds) - 1) / 2))
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("target position")
    figure.axes[0].set_ylabel("mean, and one standard deviation to each side")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)


def _draw(axes: Axes, kind: str, figures: dict[str, Any], shift: float) -> None:
    places = range(len(figures["positions"]))
    axes.errorbar(
        [place + shift for place in places],
        figures["mean"],
        yerr=figures["std"],
        fmt="o",
        capsize=3,
        color=COLOURS[kind],
        label=LABELS[kind],
    )
    axes.set_xticks(places, figures["positions"])
