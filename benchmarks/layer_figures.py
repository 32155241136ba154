"""Prints tables of the figures that `benchmarks/layer.py --json` wrote, and draws them.

    python benchmarks/layer_figures.py benchmarks/results/layer.json --png docs/layer.png     # needs matplotlib
    python benchmarks/layer_figures.py benchmarks/results/layer_operations.json

A cell of the first tables has the time over that of `keras.layers.RMSNormalization`, alone or with separate operations;
after the slash, that of `keras.layers.LayerNormalization` or, for the other operations, the time over that of our layer
and separate operations. The last table has the time over the memory bound.
"""

import argparse
import importlib.util
import itertools
import json
import math
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from benchmarks.tables import ratio

OURS, KERAS, LAYERNORM = "rmsnorm_tf", "keras RMSNormalization", "keras LayerNormalization"
NAMES = {"forward+backward": "both", "xla": "XLA"}
# A colour (Okabe and Ito), a marker and dashes for each implementation. Ours and LayerNorm have those of the reports.
STYLES = (
    ("#D55E00", "o", "-"),
    ("#009E73", "^", "-."),
    ("#0072B2", "s", "--"),
    ("#CC79A7", "D", ":"),
    ("#000000", "v", "--"),
    ("#56B4E9", "P", "-."),
)


def by(figures, *names):
    """Returns the cells by these properties, in their order."""
    found = {}
    for cell in figures:
        found.setdefault(tuple(str(cell[name]) for name in names), []).append(cell)
    return found


def head(cells, corner):
    """Returns the first two lines of a table with a column for each mode and pass."""
    columns = [
        f"{NAMES.get(each['mode'], each['mode'])}, {NAMES.get(each['passes'], each['passes'])}" for each in cells
    ]
    return [f"| {corner} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]


def ratios(cell):
    """Returns the two ratios of a cell."""
    taken = cell["seconds"]
    above, below = (LAYERNORM, KERAS) if cell["operation"] == "norm" else (OURS, f"{OURS}, apart")
    return f"{ratio(taken[OURS], taken[KERAS]):.2f} / {ratio(taken[above], taken[below]):.2f}"


def over_bound(cell):
    """Returns the time of our layer over the memory bound."""
    return f"{ratio(cell['seconds'][OURS], cell['bound']):.1f}"


def tables(figures):
    """Returns the lines of each Markdown table: one for each operation and dtype, then that of the memory bound."""
    found = []
    for (operation, dtype), cells in by(figures, "operation", "dtype").items():
        rows = by(cells, "shape")
        lines = [f"| {shape} | {' | '.join(map(ratios, row))} |" for (shape,), row in rows.items()]
        corner = dtype if operation == "norm" else f"{operation}, {dtype}"
        found.append(head(next(iter(rows.values())), corner) + lines)
    norms = by([cell for cell in figures if cell["operation"] == "norm"], "shape", "dtype")
    if norms:
        lines = [f"| {shape}, {dtype} | {' | '.join(map(over_bound, row))} |" for (shape, dtype), row in norms.items()]
        found.append(head(next(iter(norms.values())), "time over the memory bound") + lines)
    return found


def picture(figures):
    """Returns a figure of the time over the memory bound for the first dtype, one panel for each mode and pass."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(10, 7), layout="constrained")
    cells = [cell for cell in figures if cell["dtype"] == figures[0]["dtype"] and cell["operation"] == "norm"]
    modes, passes, shapes = (
        list(dict.fromkeys(str(cell[name]) for cell in cells)) for name in ("mode", "passes", "shape")
    )
    names = list(dict.fromkeys(name for cell in cells for name in cell["seconds"]))
    panels = figure.subplots(len(passes), len(modes), squeeze=False, sharex=True, sharey="row")
    for (i, passed), (j, mode) in itertools.product(enumerate(passes), enumerate(modes)):
        panel, row = panels[i, j], [c for c in cells if (c["mode"], c["passes"]) == (mode, passed)]
        for name, (color, marker, dashes) in zip(names, STYLES, strict=False):
            heights = [ratio(c["seconds"][name], c["bound"]) if name in c["seconds"] else math.nan for c in row]
            panel.plot(heights, color=color, marker=marker, linestyle=dashes, linewidth=1, label=name)
        panel.set(
            title=f"{NAMES.get(mode, mode)}, {NAMES.get(passed, passed)}", xticks=range(len(shapes)), yscale="log"
        )
        panel.set_xticklabels([shape.strip("[]").replace(", ", " x ") for shape in shapes], fontsize=9, rotation=90)
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
        panel.grid(alpha=0.3)
    for panel in panels[:, 0]:
        panel.set_ylabel("time / memory bound")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    figure.suptitle(f"Normalization of rows x units, {cells[0]['dtype']}, CPU; lower is better", fontsize=11)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, metavar="FILE", help="figures")
    parser.add_argument("--png", type=Path, help="draw the norm to this file, and as SVG beside it")
    options = parser.parse_args()
    if options.png and importlib.util.find_spec("matplotlib") is None:
        parser.error("--png needs matplotlib: pip install matplotlib")
    figures = json.loads(options.file.read_text())["figures"]
    print("\n\n".join("\n".join(lines) for lines in tables(figures)))
    if options.png:
        figure = picture(figures)
        for path in (options.png, options.png.with_suffix(".svg")):
            figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
