"""Mean and standard deviation of the decoder's recurrent activations by position, beside the paper's Table 5."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from ...reporting.section import Claim, Section
from ..published import ACTIVATIONS, LABELS
from ..results import Result
from ..row import Row
from ..row_styles import styles_of
from .verdicts import not_shown

# The rows that are compared: with the same recipe, models without a norm and with two kinds learn to translate.
_COMPARED = {"none": "none-recipe", "layernorm": "layernorm-recipe", "rmsnorm": "rmsnorm-recipe"}

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
        f"The model is the tested checkpoint, of {_updates(done.values())}. One seed.",
        f"Over the positions shown the standard deviation is {_ranges(ours)}."
        + (f" In the paper it is {_ranges(papers)}." if published else ""),
        *(
            f"The paper's claim is that the norms shrink the deviation: {claim.paper}. Here we compare the models with "
            f"Adam's epsilon of 0.001, because the Baseline does not learn to translate: {claim.ours}."
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


def _updates(done: Iterable[Result]) -> str:
    """Says after which updates the models were measured."""
    rows: dict[int, list[str]] = {}
    for each in done:
        rows.setdefault(each.best["update"], []).append(each.row.label)
    return "; ".join(f"update {update:,} for {', '.join(labels)}" for update, labels in sorted(rows.items()))


def _claims(done: dict[Row, Result]) -> list[Claim]:
    """Judges the paper's claim that norms shrink the deviation, by models that learn to translate."""
    found = {row.name: each.log["activations"]["std"] for row, each in done.items()}
    if not set(_COMPARED.values()) <= found.keys():
        return []
    ours = {kind: found[row] for kind, row in _COMPARED.items()}
    paper = {kind: ACTIVATIONS["baseline" if kind == "none" else kind]["std"] for kind in _COMPARED}
    shrunk = [ours[kind][at] < ours["none"][at] for kind in ("layernorm", "rmsnorm") for at in (0, -1)]
    direction = "the same direction" if all(shrunk) else "both directions" if any(shrunk) else "the opposite direction"
    return [
        Claim(
            "Table 5: the norms shrink the deviation of the decoder's activations",
            _from_to(paper),
            f"{_from_to(ours)}, 1 seed",
            f"{direction}, {not_shown(1)}",
        )
    ]


def _from_to(std: Mapping[str, Sequence[float]]) -> str:
    """Describes the deviation without and with the norms, at the first position and over all."""
    first, over_all = ({kind: found[at] for kind, found in std.items()} for at in (0, -1))
    told = "from {none:.2f} to {layernorm:.2f} (LayerNorm) and {rmsnorm:.2f} (RMSNorm)"
    return f"{told.format(**first)} at position 1, {told.format(**over_all)} over all positions"


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
    """Draws the standard deviations, which the claim is about."""
    figure.set(size_inches=(9.5, 5.4), layout_engine="constrained")
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    styles = styles_of(next(iter(panels.values())))
    for axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
        for row, figures in rows.items():
            axes.plot(figures["positions"], figures["std"], label=row.label, **styles[row].line())
        axes.set(title=title, xlabel="target position", yscale="log")
    all_axes[0].set_ylabel("standard deviation")
    all_axes[0].yaxis.set_major_formatter("{x:g}")
    all_axes[0].yaxis.set_minor_formatter("")
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
