"""Initialisation around another centre (Figure 4)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from ..results import Result, by_row
from ..row import Row
from ..section import Section
from .curves import Curve, curve, draw


def section(results: Sequence[Result]) -> Section:
    """Returns the section of the rows whose matrices are initialised elsewhere, beside those of Table 2."""
    rows = by_row(result for result in results if result.seed == 1)
    moved = {row: done for row, done in rows.items() if row.section == "centre"}
    kinds = {row.kind for row in moved}
    shown = {row: done for row, done in rows.items() if row.kind in kinds}
    curves = {row: curve(done) for row, done in shown.items()}
    centres = sorted({row.centre for row in moved})
    return Section(
        name="centre",
        title="The centre of the initialisation moved (Figure 4)",
        text=[
            f"Every matrix, embeddings and orthogonal ones included, is initialised as ever and then has "
            f"{' or '.join(map(str, centres))} added to all its entries; all else is as in Table 2, first seed. In the "
            "paper LayerNorm becomes very unstable with that, RMSNorm is more robust, and both are worse than with the "
            "ordinary initialisation; its figure has no numbers.",
            " ".join(_compare(row, shown) for row in moved),
        ],
        columns=["", "centre", "best dev BLEU", "last dev BLEU", "updates skipped"],
        rows=[
            [row.label, f"{row.centre:g}", f"{done.dev:.1f}", f"{list(curves[row].values())[-1]:.1f}", _skipped(done)]
            for row, (done,) in shown.items()
        ],
        data={row.name: curves[row] for row in shown},
        plot=lambda figure: _plot(figure, curves),
    )


def _skipped(done: Result) -> str:
    return str(done.log["skipped"])


def _compare(row: Row, shown: dict[Row, list[Result]]) -> str:
    """Tells how a row does against the one of the same kind with the ordinary initialisation."""
    usual = next(done[0] for other, done in shown.items() if other.kind == row.kind and not other.centre)
    return f"{row.label}: {shown[row][0].dev:.1f} on the dev set, {usual.dev:.1f} with the ordinary initialisation."


def _plot(figure: Figure, curves: dict[Row, Curve]) -> None:
    figure.set(size_inches=(9, 3.8), layout_engine="constrained")
    axes = figure.subplots()
    draw(axes, ((row, each) for row, each in curves.items() if not row.centre), lambda row, update: update, marker=".")
    moved = ((row, each) for row, each in curves.items() if row.centre)
    draw(axes, moved, lambda row, update: update, marker=".", linestyle="--")
    axes.set_xlabel("updates")
    axes.legend(fontsize=8)
