"""The sweep over p of pRMSNorm (Figure 3)."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmsnorm_tf.equation import prefix_size

from ...reporting.section import Section
from ..colours import COLOURS, OTHERS
from ..results import Result

# By the name of the row: those of Table 2 that are points of the sweep too.
_OF_TABLE2 = {"prmsnorm": 0.0625, "rmsnorm": 1.0}


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the sweep, if any of its points is done, of the first seed."""
    first = [result for result in results if result.seed == 1]
    if not any(result.row.partial for result in first):
        return None
    options, tests = first[0].log["options"], list(first[0].log["tests"])
    sizes = sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})
    points = [
        {"row": each.row.name, "p": p, "dev": each.dev} | {test: each.test(test) for test in tests}
        for each in first
        if (p := each.row.partial or _OF_TABLE2.get(each.row.name))
    ]
    points.sort(key=lambda point: point["p"])
    bleu = [point[tests[0]] for point in points]
    return Section(
        name="partial",
        title="The part of the entries that gives the statistic (Figure 3)",
        text=[
            "pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. The model's norms are over "
            f"{', '.join(map(str, sizes))} entries; k is given for each. Where two p give the same k they are the same "
            f"norm: up to p = 1/{sizes[-1]} every norm has k = 1. One seed.",
            f"Over these p the BLEU on {tests[0]} lies between {min(bleu):.1f} and {max(bleu):.1f}. The paper's figure "
            "has no numbers.",
        ],
        columns=["p", *(f"k of {size}" for size in sizes), "dev BLEU", *(f"{test} BLEU" for test in tests)],
        rows=[
            [
                f"{point['p']:.2%}",
                *(str(prefix_size(size, point["p"])) for size in sizes),
                *(f"{point[name]:.1f}" for name in ("dev", *tests)),
            ]
            for point in points
        ],
        data=points,
        plot=lambda figure: _plot(figure, points, ["dev", *tests], sizes),
    )


def _plot(figure: Figure, points: list[dict[str, Any]], names: list[str], sizes: list[int]) -> None:
    figure.set(size_inches=(9, 4.4), layout_engine="constrained")
    axes = figure.subplots()
    x = [point["p"] for point in points]
    for name, marker, colour in zip(names, "os^v", (COLOURS["prmsnorm"], *OTHERS), strict=False):
        axes.plot(x, [point[name] for point in points], f"{marker}-", color=colour, label=name)
    axes.set_xscale("log")
    axes.set_xticks(x, [_tick(p, sizes) for p in x], fontsize=8)
    axes.minorticks_off()
    axes.set(xlabel=f"p, and below it k of {', of '.join(map(str, sizes))} entries", ylabel="BLEU")
    _shade(axes, sizes[-1])
    figure.legend(loc="outside upper center", ncols=5, frameon=False)


def _shade(axes: Axes, size: int) -> None:
    """Shades where every norm has k = 1, as that of the largest size has, if a point is there."""
    start, stop = axes.get_xlim()
    if min(axes.get_xticks()) <= 1 / size:
        axes.axvspan(start, 1 / size, color="#E8E8E8", zorder=0, label=f"p up to 1/{size}: k = 1 in every norm")
        axes.set_xlim(start, stop)


def _tick(p: float, sizes: Sequence[int]) -> str:
    return "\n".join([f"{p:.4g}", *(str(prefix_size(size, p)) for size in sizes)])
