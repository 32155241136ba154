"""Mean and standard deviation of the decoder's recurrent activations by position, beside the paper's Table 5."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.section import Claim, Section
from ...reporting.styles import Style
from ..published import ACTIVATIONS, LABELS
from ..results import Result
from ..row import Row
from ..row_styles import styles_of
from .verdicts import RECIPES, not_shown, on_failure

_SHRUNK = 2  # the deviation counts as shrunk if the Baseline's is more than this many times larger

Figures = dict[str, Any]  # as `inside.decoder_states` writes them


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the results that have measured activations, or `None` without any."""
    done = {each.row: each for each in results if "activations" in each.log}
    if not done:
        return None
    measured, claims = {row: each.log["activations"] for row, each in done.items()}, _claims(done)
    published = {row: ACTIVATIONS[row.name] for row in measured if row.name in ACTIVATIONS}
    panels = {"ours, first GRU": measured} | ({"published": published} if published else {})
    ours = {row.label: figures for row, figures in measured.items()}
    papers = {LABELS[row.name]: figures for row, figures in published.items()}
    any_row = next(iter(measured.values()))
    text = [
        "The hidden-to-hidden activation is N(h U): the product of the decoder's state, for both gates and the "
        "proposal, after the norm with its gain (and LayerNorm's offset), before the product of the input is added and "
        "before the nonlinearity. For the Baseline, N does nothing. The conditional GRU has two steps. The first gets "
        "the state of the previous position and has no bias in N; it is compared with the paper. The second follows "
        "the attention and has its biases inside N.",
        "Mean and standard deviation are over the units at each position, averaged over the "
        f"{any_row['tokens'][-1]:,} target positions of the {any_row['tokens'][0]:,} sentences of the dev set. The end "
        "of a sentence is a position, padding is not. The decoder gets the reference's words. "
        "The model is the tested checkpoint. One seed.",
        f"Over the positions shown the standard deviation is {_ranges(ours)}."
        + (f" In the paper it is {_ranges(papers)}." if published else ""),
        *(
            f"The paper's claim is that the norms shrink the deviation: {claim.paper}. Here it goes {claim.ours}: "
            f"{claim.verdict}. A deviation counts as shrunk if the Baseline's is more than {_SHRUNK} times as large."
            for claim in claims
        ),
    ]
    return Section(
        name="activations",
        title="The decoder's hidden-to-hidden activations (Table 5)",
        text=text,
        columns=["mean (standard deviation)", *(_position(name) for name in any_row["positions"])],
        rows=[cells for row, figures in measured.items() for cells in _rows(row, figures)],
        data={row.name: figures for row, figures in measured.items()},
        plot=lambda figure: _plot(figure, panels),
        claims=claims,
    )


def _position(name: str) -> str:
    return "all positions" if name == "all" else f"position {name}"


def _claims(done: dict[Row, Result]) -> list[Claim]:
    """Judges the paper's claim that norms shrink the deviation, by the first position."""
    found = {row.name: each for row, each in done.items()}
    if not ACTIVATIONS.keys() <= found.keys():
        return []
    ours = {name: each.log["activations"]["std"][0] for name, each in found.items()}
    paper = {name: figures["std"][0] for name, figures in ACTIVATIONS.items()}
    shrunk = ours["baseline"] > _SHRUNK * max(ours["layernorm"], ours["rmsnorm"])
    own = {row.name: row.options for row in done}
    recipes = "" if own["baseline"] == own["layernorm"] == own["rmsnorm"] else RECIPES
    failed = on_failure([found["baseline"]])
    return [
        Claim(
            "Table 5: the norms shrink the deviation of the decoder's activations",
            f"{_from_to(paper)} at position 1",
            f"{_from_to(ours)}, 1 seed",
            (f"the same direction, {not_shown(1)}" if shrunk else "not borne out by 1 seed") + failed + recipes,
        )
    ]


def _from_to(std: dict[str, float]) -> str:
    return f"from {std['baseline']:.2f} to {std['layernorm']:.2f} (LayerNorm) and {std['rmsnorm']:.2f} (RMSNorm)"


def _rows(row: Row, figures: Figures) -> list[list[str]]:
    """Returns our rows of the table, and the published one if there is one."""
    parts = {"first GRU": figures, "second GRU": figures["second"]}
    if row.name in ACTIVATIONS:
        parts["published"] = ACTIVATIONS[row.name]
    labels = {"published": LABELS.get(row.name, "")}
    return [[f"{labels.get(name, row.label)}, {name}", *_cells(part)] for name, part in parts.items()]


def _cells(figures: Figures) -> list[str]:
    # Adding 0 turns -0.00 into 0.00.
    return [
        f"{round(mean, 2) + 0.0:.2f} ({std:.2f})" for mean, std in zip(figures["mean"], figures["std"], strict=True)
    ]


def _ranges(rows: dict[str, Figures]) -> str:
    """Describes the range of the standard deviations over the single positions, by label."""
    stds = {label: figures["std"][:-1] for label, figures in rows.items()}
    return "; ".join(f"{min(each):.2f} to {max(each):.2f} for {label}" for label, each in stds.items())


def _plot(figure: Figure, panels: dict[str, dict[Row, Figures]]) -> None:
    figure.set(size_inches=(9.5, 4.8), layout_engine="constrained")
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
        axes.axhline(0, color="black", linewidth=0.5)
        for number, (row, style) in enumerate(styles_of(rows).items()):
            shift = min(0.15, 0.8 / len(rows)) * (number - (len(rows) - 1) / 2)
            _draw(axes, rows[row], shift, style, row.label)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("target position")
    all_axes[0].set_ylabel("mean; the bar is one standard deviation each way")
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def _draw(axes: Axes, figures: Figures, shift: float, style: Style, label: str) -> None:
    places = range(len(figures["positions"]))
    x = [place + shift for place in places]
    look = {"fmt": style.marker, "color": style.color, "capsize": 3, "markersize": 5}
    axes.errorbar(x, figures["mean"], yerr=figures["std"], label=label, **look)
    axes.set_xticks(places, figures["positions"])
