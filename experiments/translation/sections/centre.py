"""Initialisation around another centre (Figure 4)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from ...reporting.section import Claim, Section
from ...reporting.styles import KINDS, OTHERS, Style
from ..published import CENTRED, LABELS, TABLE2
from ..results import Result
from ..row import Row
from .curves import Curve, curve, draw
from .verdicts import not_shown


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section that compares the rows with another centre to those of Table 2, or `None` without any."""
    done = {result.row: result for result in results if result.seed == 1}
    moved = [row for row in done if row.section == "centre"]
    if not moved:
        return None
    kinds = {row.kind for row in moved}
    usual = {row.kind: row for row in done if row.name in TABLE2 and row.kind in kinds}
    shown = [*usual.values(), *moved]
    curves = {row: curve([done[row]]) for row in shown}
    centres = sorted({row.centre for row in moved})
    compared = [_compare(done[row], done[usual[row.kind]]) for row in moved if row.kind in usual]
    return Section(
        name="centre",
        title="Another centre of the initialisation (Figure 4)",
        text=[
            f"Every matrix, embeddings and orthogonal ones included, is initialised as usual; then "
            f"{' or '.join(map(str, centres))} is added to all its entries. All else is as in Table 2. With one seed, "
            "differences may be due to chance.",
            *([" ".join(compared)] if compared else []),
            _on_paper(done, moved),
        ],
        columns=["", "centre", "best dev BLEU", "last dev BLEU", "updates skipped"],
        rows=[_cells(done[row], curves[row]) for row in shown],
        data={row.name: found for row, found in curves.items()},
        plot=lambda figure: _plot(figure, curves),
        claims=_claims({row.kind: done[row].dev for row in moved}),
    )


def _claims(ours: dict[str, float]) -> list[Claim]:
    """Judges the paper's claim, from the best dev BLEU of each kind with another centre."""
    if not CENTRED.keys() <= ours.keys():
        return []
    paper = {kind: max(found.values()) for kind, found in CENTRED.items()}
    same = (ours["rmsnorm"] > ours["layernorm"]) == (paper["rmsnorm"] > paper["layernorm"])
    return [
        Claim(
            "Figure 4: RMSNorm bears initial weights around 0.2 better than LayerNorm",
            f"best BLEU {paper['rmsnorm']} against {paper['layernorm']}",
            f"best dev BLEU {ours['rmsnorm']:.1f} against {ours['layernorm']:.1f}, 1 seed",
            f"the same order, {not_shown(1)}" if same else "not borne out by 1 seed: the order is reversed",
        )
    ]


def _on_paper(done: dict[Row, Result], moved: list[Row]) -> str:
    """Describes the published values, and whether the order of the two norms is the paper's."""
    best = {kind: max(found.values()) for kind, found in CENTRED.items()}
    published = " and ".join(f"{best[kind]} with {LABELS[kind]}" for kind in CENTRED)
    told = f"In the paper's Figure 4 (centre 0.2, read from the authors' vector drawing) the best BLEU is {published}."
    ours = {row.kind: done[row].dev for row in moved}
    if not CENTRED.keys() <= ours.keys():
        return told
    if (ours["rmsnorm"] > ours["layernorm"]) == (best["rmsnorm"] > best["layernorm"]):
        return f"{told} Here the order is the same."
    return (
        f"{told} Here the order is reversed; the reason is unknown. LayerNorm is invariant to a number added to all "
        "weights, and RMSNorm is not, but that holds in the paper too. Whether the embeddings or the other matrices "
        "make the difference was not tested."
    )


def _cells(result: Result, found: Curve) -> list[str]:
    scores = [f"{result.dev:.1f}", f"{found[max(found)][0]:.1f}"]
    return [result.row.label, f"{result.row.centre:g}", *scores, str(result.log["skipped"])]


def _compare(moved: Result, usual: Result) -> str:
    return f"{moved.row.label}: {moved.dev:.1f} on the dev set, {usual.dev:.1f} with the usual initialisation."


def _style(row: Row) -> Style:
    style = KINDS.get(row.kind, OTHERS[0])
    return style._replace(dashes="--" if row.centre else "-")


def _plot(figure: Figure, curves: dict[Row, Curve]) -> None:
    figure.set(size_inches=(9.5, 4.4), layout_engine="constrained")
    ours, published = figure.subplots(1, 2, width_ratios=[3, 2])
    draw(ours, curves, {row: _style(row) for row in curves})
    ours.set(xlabel="updates", ylabel="dev BLEU", title="ours, one seed")
    for kind, found in CENTRED.items():
        published.plot(list(found), list(found.values()), **KINDS[kind]._replace(dashes="--").line())
    published.set(xlabel="validations, 30,000 updates each", ylabel="BLEU", title="published, centre 0.2 (WMT14)")
    figure.legend(*ours.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
