"""Initialisation around another centre (Figure 4)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from ...reporting.section import Section
from ..colours import COLOURS, OTHERS
from ..published import TABLE2
from ..results import Result
from ..row import Row
from .curves import Curve, curve, draw


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the rows whose matrices are initialised elsewhere, if any, beside those of Table 2."""
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
        title="The centre of the initialisation moved (Figure 4)",
        text=[
            f"Every matrix, embeddings and orthogonal ones included, is initialised as ever and then has "
            f"{' or '.join(map(str, centres))} added to all its entries; all else is as in Table 2, first seed. In the "
            "paper LayerNorm becomes very unstable with that, RMSNorm is more robust, and both are worse than with the "
            "ordinary initialisation; its figure has no numbers.",
            *([" ".join(compared)] if compared else []),
        ],
        columns=["", "centre", "best dev BLEU", "last dev BLEU", "updates skipped"],
        rows=[_cells(done[row], curves[row]) for row in shown],
        data={row.name: found for row, found in curves.items()},
        plot=lambda figure: _plot(figure, curves),
    )


def _cells(result: Result, found: Curve) -> list[str]:
    scores = [f"{result.dev:.1f}", f"{found[max(found)]:.1f}"]
    return [result.row.label, f"{result.row.centre:g}", *scores, str(result.log["skipped"])]


def _compare(moved: Result, usual: Result) -> str:
    return f"{moved.row.label}: {moved.dev:.1f} on the dev set, {usual.dev:.1f} with the ordinary initialisation."


def _plot(figure: Figure, curves: dict[Row, Curve]) -> None:
    figure.set(size_inches=(9, 4), layout_engine="constrained")
    axes = figure.subplots()
    colours = {row: COLOURS.get(row.kind, OTHERS[0]) for row in curves}
    for row, found in curves.items():
        draw(axes, {row: found}, colours, linestyle="--" if row.centre else "-")
    axes.set(xlabel="updates", ylabel="dev BLEU")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
