"""Draws the figures that `benchmarks/serving.py --json` wrote.

    python benchmarks/serving_picture.py benchmarks/results/serving_*.json --to docs/serving.png     # needs matplotlib

Writes the picture as PNG and as SVG.
"""

import argparse
import json
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

# A colour that everybody can tell from the others (Okabe and Ito), a marker and dashes for each line.
STYLES = (("#0072B2", "s", "--"), ("#D55E00", "^", "-"))


def draw(figure, found):
    """Draws the rate and the latency against the number of callers, for requests of one sentence and of 16."""
    all_axes = figure.subplots(2, 2, sharex=True)
    for column, sentences in enumerate(("1", "16")):
        top, bottom = all_axes[:, column]
        for (name, values), (color, marker, dashes) in zip(found.items(), STYLES, strict=False):
            rows = values["callers"][sentences]
            callers = list(map(int, rows))
            line = {"color": color, "marker": marker, "linestyle": dashes}
            top.plot(callers, [each["rate"] for each in rows.values()], label=f"{name}, service", **line)
            best = max(values["signature"].values())
            top.axhline(best, color=color, linestyle=":", linewidth=1, label=f"{name}, signature at its best batch")
            bottom.plot(callers, [each["p50"] / 1000 for each in rows.values()], label=f"{name}, p50", **line)
            ends = [each["p99"] / 1000 for each in rows.values()]
            bottom.plot(callers, ends, label=f"{name}, p99", **{**line, "linestyle": ":"})
        top.set_title(f"requests of {sentences} sentence{'s' if sentences != '1' else ''}")
        top.set_ylim(bottom=0)
        bottom.set(xlabel="callers", yscale="log")
        bottom.set_xscale("log", base=2)
        bottom.yaxis.set_major_formatter("{x:g}")
        bottom.yaxis.set_minor_formatter(NullFormatter())
        bottom.set_xticks(callers, list(map(str, callers)))
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
    all_axes[0, 0].set_ylabel("sentences/s")
    all_axes[1, 0].set_ylabel("seconds a request")
    all_axes[0, 0].legend(fontsize=7)
    all_axes[1, 0].legend(fontsize=7)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="figures; the name is that of the line")
    parser.add_argument("--to", type=Path, required=True, metavar="PNG", help="the picture (required)")
    options = parser.parse_args()
    figure = Figure(figsize=(8, 6), layout="constrained")
    draw(figure, {path.stem.removeprefix("serving_"): json.loads(path.read_text()) for path in options.files})
    for path in (options.to, options.to.with_suffix(".svg")):
        figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
