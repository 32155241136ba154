"""Mean and standard deviation of the decoder's recurrent activations by position, beside the paper's Table 5."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Section
from ..colours import colours_of
from ..published import ACTIVATIONS
from ..row import Row

Figures = dict[str, Any]  # as `experiments.activations` writes them


def section(measured: dict[Row, Figures]) -> Section | None:
    """Returns the section of what was measured of each row, if anything was."""
    if not measured:
        return None
    published = {row: ACTIVATIONS[row.name] for row in measured if row.name in ACTIVATIONS}
    panels = {"ours, first GRU": measured} | ({"published": published} if published else {})
    any_row = next(iter(measured.values()))
    text = [
        "Hidden-to-hidden is taken to be what the decoder's GRU makes of its state before it adds what it makes of its "
        "input: N(h U), for both gates and the proposal, after the norm with its gain (and LayerNorm's offset) and "
        "before the nonlinearity; for the Baseline N does nothing. The conditional GRU has two such steps. Compared "
        "with the paper is the first, which gets the state from the position before and has no bias on this side; the "
        "second, after the attention, has its biases within N, and is shown too.",
        "Mean and standard deviation are over the units, at each position of each sentence, and are averaged over the "
        f"{any_row['tokens'][-1]:,} target positions of the {any_row['tokens'][0]:,} sentences of the dev set, of "
        "which a sentence's end is one and padding is none. The words before a position are those of the reference.",
        f"Over the single positions the standard deviation is {_ranges(measured)}."
        + (f" In the paper it is {_ranges(published)}." if published else ""),
    ]
    return Section(
        name="activations",
        title="The decoder's hidden-to-hidden activations (Table 5)",
        text=text,
        columns=["mean (standard deviation)", *(_position(name) for name in any_row["positions"])],
        rows=[cells for row, figures in measured.items() for cells in _rows(row, figures)],
        data={row.name: figures for row, figures in measured.items()},
        plot=lambda figure: _plot(figure, panels),
    )


def _position(name: str) -> str:
    return "all positions" if name == "all" else f"position {name}"


def _rows(row: Row, figures: Figures) -> list[list[str]]:
    """Returns our rows of the table, and the published one where there is one."""
    parts = {"first GRU": figures, "second GRU": figures["second"]}
    if row.name in ACTIVATIONS:
        parts["published"] = ACTIVATIONS[row.name]
    return [[f"{row.label}, {name}", *_cells(part)] for name, part in parts.items()]


def _cells(figures: Figures) -> list[str]:
    # Adding 0 makes a zero of -0.00.
    return [
        f"{round(mean, 2) + 0.0:.2f} ({std:.2f})" for mean, std in zip(figures["mean"], figures["std"], strict=True)
    ]


def _ranges(rows: dict[Row, Figures]) -> str:
    """Tells between what the standard deviations of the single positions are, for each row."""
    stds = {row.label: figures["std"][:-1] for row, figures in rows.items()}
    return "; ".join(f"{min(each):.2f} to {max(each):.2f} for {label}" for label, each in stds.items())


def _plot(figure: Figure, panels: dict[str, dict[Row, Figures]]) -> None:
    figure.set(size_inches=(9, 4.4), layout_engine="constrained")
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
        axes.axhline(0, color="black", linewidth=0.5)
        for number, (row, colour) in enumerate(colours_of(rows).items()):
            shift = min(0.15, 0.8 / len(rows)) * (number - (len(rows) - 1) / 2)
            _draw(axes, rows[row], shift, color=colour, label=row.label)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("target position")
    all_axes[0].set_ylabel("mean, and one standard deviation to each side")
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)


def _draw(axes: Axes, figures: Figures, shift: float, **style: str) -> None:
    places = range(len(figures["positions"]))
    x = [place + shift for place in places]
    axes.errorbar(x, figures["mean"], yerr=figures["std"], fmt="o", capsize=3, **style)
    axes.set_xticks(places, figures["positions"])
