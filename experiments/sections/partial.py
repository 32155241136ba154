"""The sweep over p of pRMSNorm (Figure 3)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from rmsnorm_tf.equation import prefix_size

from ..results import Result
from ..section import Section
from .colours import COLOURS

# Of Table 2's rows, those that are points of the sweep too.
_OF_TABLE2 = {"prmsnorm": 0.0625, "rmsnorm": 1.0}


def section(results: Sequence[Result]) -> Section:
    """Returns the section of the sweep, of the first seed."""
    points = {
        result.row.partial or _OF_TABLE2[result.row.kind]: result
        for result in results
        if result.seed == 1 and (result.row.partial or (result.row.kind in _OF_TABLE2 and not result.row.centre))
    }
    points = dict(sorted(points.items()))
    options = results[0].log["options"]
    units = options["state_size"]
    tests = list(results[0].log["tests"])
    figures = {p: {"dev": result.dev} | {test: result.test(test) for test in tests} for p, result in points.items()}
    bleu = [each[tests[0]] for each in figures.values()]
    sizes = sorted({options["embedding_size"], units, 2 * units})
    return Section(
        name="partial",
        title="The part of the entries that gives the statistic (Figure 3)",
        text=[
            "pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. The model's norms are over "
            f"{', '.join(map(str, sizes))} entries; k is given for each, and where two p give the same k they are the "
            "same norm. One seed.",
            f"Over these p the BLEU on {tests[0]} lies between {min(bleu):.1f} and {max(bleu):.1f}. The paper's figure "
            "has no numbers.",
        ],
        columns=["p", *(f"k of {size}" for size in sizes), "dev BLEU", *(f"{test} BLEU" for test in tests)],
        rows=[
            [f"{p:.2%}", *(str(prefix_size(size, p)) for size in sizes), *(f"{value:.1f}" for value in each.values())]
            for p, each in figures.items()
        ],
        data={str(p): each for p, each in figures.items()},
        plot=lambda figure: _plot(figure, figures, sizes),
    )


def _plot(figure: Figure, figures: dict[float, dict[str, float]], sizes: Sequence[int]) -> None:
    figure.set(size_inches=(9, 3.8), layout_engine="constrained")
    axes = figure.subplots()
    for name, marker in zip(next(iter(figures.values())), "os^v", strict=False):
        axes.plot(list(figures), [each[name] for each in figures.values()], f"{marker}-", label=name)
    axes.lines[0].set_color(COLOURS["prmsnorm"])
    axes.set_xscale("log")
    axes.set_xticks(list(figures), [_tick(p, sizes) for p in figures], fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel(f"p, and k of {', '.join(map(str, sizes))} entries")
    axes.set_ylabel("BLEU")
    axes.legend()


def _tick(p: float, sizes: Sequence[int]) -> str:
    return f"{p:.4g}\n" + ", ".join(str(prefix_size(size, p)) for size in sizes)
