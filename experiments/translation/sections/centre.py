"""Initialisation around another centre (Figure 4)."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.intervals import signed, spread, t_interval
from ...reporting.section import Section
from ...reporting.styles import KINDS
from ..published import LABELS, TABLE2
from ..published_curves import CENTRED
from ..results import Result, by_row
from ..row import Row

_MOVED = {"": "none", "embeddings": "embeddings", "matrices": "other matrices", "all": "all"}  # by `Row.moved`

Rows = dict[Row, list[Result]]


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section that compares the rows with another centre to those of Table 2, or `None` without any."""
    rows = by_row(results)
    moved = {row: done for row, done in rows.items() if row.section == "centre"}
    if not moved:
        return None
    kinds = {row.kind for row in moved}
    usual = {row: done for row, done in rows.items() if row.name in TABLE2 and row.kind in kinds}
    shown, pairs, by_kind = {**usual, **moved}, _pairs(moved), {row.kind: done for row, done in usual.items()}
    return Section(
        name="centre",
        title="Another centre of the initialisation (Figure 4)",
        text=[
            "Matrices are initialised as usual; then the centre is added to all entries of some of them: the "
            f"embeddings{_tied(results[0])}, the other matrices in front of a norm, or all, with the attention's last "
            "vector. All else is as in Table 2. Differences are of best dev BLEU, paired by seed, with their 95% "
            "interval. Three seeds judge nothing; the order with all matrices moved has five, and is judged above.",
            *_on_losses(moved, by_kind),
            _on_paper(),
        ],
        columns=[
            "",
            "centre",
            "moved",
            "seeds",
            "best dev BLEU",
            "last dev BLEU",
            "skipped",
            "minus the usual centre",
            "RMSNorm minus LayerNorm",
        ],
        rows=[
            [
                *_cells(row, done),
                told(gains_of(done, by_kind[row.kind])) if row.centre and row.kind in by_kind else "",
                *_against(row, pairs),
            ]
            for row, done in shown.items()
        ],
        data={row.name: {result.seed: result.dev for result in done} for row, done in shown.items()},
        plot=lambda figure: _plot(figure, usual, moved),
    )


def _tied(result: Result) -> str:
    tied = result.log["options"].get("tie_decoder_embeddings")
    return " (those of the target are the output table too)" if tied else ""


def _pairs(moved: Rows) -> dict[tuple[float, str], list[float]]:
    """Returns the BLEU of RMSNorm less that of LayerNorm by centre and by what is moved."""
    done = {(row.kind, row.centre, row.moved): found for row, found in moved.items()}
    return {
        (centre, part): gains
        for kind, centre, part in done
        if kind == "rmsnorm"
        and ("layernorm", centre, part) in done
        and (gains := gains_of(done[kind, centre, part], done["layernorm", centre, part]))
    }


def _against(row: Row, pairs: dict[tuple[float, str], list[float]]) -> list[str]:
    return [told(pairs.get((row.centre, row.moved), [])) if row.kind == "rmsnorm" and row.centre else ""]


def _on_losses(moved: Rows, usual: Mapping[str, Sequence[Result]]) -> list[str]:
    """Says how little LayerNorm's first training losses change if only the matrices before it are moved."""
    pairs = [
        (result.log["validations"][0], other.log["validations"][0])
        for row, done in moved.items()
        if (row.kind, row.moved) == ("layernorm", "matrices")
        for result in done
        for other in usual.get(row.kind, [])
        if result.seed == other.seed
    ]
    changes = [abs(one["train_loss"] - other["train_loss"]) for one, other in pairs if "train_loss" in one]
    if not changes:
        return []
    return [
        "Adding a number to the matrices before LayerNorm changes no output but by rounding. At the first validation, "
        f"the training loss of the same seed differs by at most {max(changes):.3f}. So the differences in BLEU of "
        "these rows show how far rounding alone drives two trainings apart."
    ]


def _on_paper() -> str:
    published = " and ".join(f"{max(found):.1f} with {LABELS[kind]}" for kind, found in CENTRED.items())
    return (
        "The paper says only that the initial weights are centred at 0.2, not which; we compare it with the rows that "
        f"move all. In the {len(CENTRED['layernorm'])} validations of its Figure 4 (read from the authors' vector "
        f"drawing) the best BLEU is {published}."
    )


def gains_of(one: Sequence[Result], other: Sequence[Result]) -> list[float]:
    """Returns the best dev BLEU of one row less that of another, for the seeds that both have."""
    found = {result.seed: result.dev for result in other}
    return [result.dev - found[result.seed] for result in one if result.seed in found]


def told(gains: Sequence[float]) -> str:
    """Returns the mean difference with its 95% interval as text, or the difference of a single seed."""
    if not gains:
        return ""
    return signed(t_interval(gains)) if len(gains) > 1 else f"{gains[0]:+.1f} (1 seed)"


def _cells(row: Row, done: Sequence[Result]) -> list[str]:
    last = [result.log["validations"][-1]["bleu"] for result in done]
    part = _MOVED[row.moved if row.centre else ""]
    scores = [spread([result.dev for result in done]), spread(last)]
    return [row.label, f"{row.centre:g}", part, str(len(done)), *scores, str(sum(r.log["skipped"] for r in done))]


def _plot(figure: Figure, usual: Rows, moved: Rows) -> None:
    """Draws the best dev BLEU by what is moved, a panel for each centre, and the published curves."""
    centres = [centre for centre, _ in groupby(sorted(row.centre for row in moved))]
    figure.set(size_inches=(3.4 * (len(centres) + 1), 4.4), layout_engine="constrained")
    *panels, published = figure.subplots(1, len(centres) + 1)
    for axes in panels[1:]:
        axes.sharey(panels[0])
    for axes, centre in zip(panels, centres, strict=True):
        _draw(axes, {**usual, **{row: done for row, done in moved.items() if row.centre == centre}})
        axes.set(xlabel="moved", ylabel="best dev BLEU", title=f"ours, centre {centre:g}")
    for kind, found in CENTRED.items():
        published.plot(found, **KINDS[kind]._replace(dashes="--").line())
    published.set(xlabel="validations, 30,000 updates each", ylabel="BLEU", title="published, centre 0.2 (WMT14)")
    panels[0].plot([], [], "_", color="black", label="each seed")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def _draw(axes: Axes, rows: Rows) -> None:
    places = list(_MOVED)
    for number, kind in enumerate(dict.fromkeys(row.kind for row in rows)):
        found = {row.moved if row.centre else "": done for row, done in rows.items() if row.kind == kind}
        x = [places.index(part) + 0.12 * (2 * number - 1) for part in found]
        scores = [[result.dev for result in done] for done in found.values()]
        style = KINDS[kind]
        axes.plot(
            x, list(map(mean, scores)), style.marker, color=style.color, label=f"{LABELS[kind]}, mean of the seeds"
        )
        for at, values in zip(x, scores, strict=True):
            axes.plot([at] * len(values), values, "_", color=style.color)
    axes.set_xticks(range(len(places)), [name.replace(" ", "\n") for name in _MOVED.values()])
