"""Prints tables of the figures that `benchmarks/serving.py --json` wrote, and draws them.

    python benchmarks/serving_figures.py benchmarks/results/serving_*.json
    python benchmarks/serving_figures.py benchmarks/results/serving_*.json --to docs/serving.png     # needs matplotlib

Writes the picture as PNG and as SVG.
"""

import argparse
import json
from pathlib import Path
from statistics import median

# A colour that everybody can tell from the others (Okabe and Ito), a marker and dashes for each line.
STYLES = (("#0072B2", "s", "--"), ("#D55E00", "^", "-"), ("#009E73", "o", "-."))


def cells(found):
    """Returns the figures of an export by the name of their row."""
    best = max(found["signature"], key=found["signature"].get)
    many, single = found["callers"]["16"]["16"], found["callers"]["1"]["16"]
    cold, warm, one, memory = (found[name] for name in ("without warm-up", "with warm-up", "one", "memory"))
    shares = {name: median(rounds) for name, rounds in found.get("share", {}).get("rounds", {}).items()}
    return {
        "sentences/s of the signature, at its best batch size": f"{found['signature'][best]:.0f} (batches of {best})",
        "sentences/s of the service, 16 callers of 16 sentences": f"{many['rate']:.0f}",
        **{f"service over signature, in turn, 16 callers x {name}": f"{share:.2f}" for name, share in shares.items()},
        "sentences/s of the signature, batches of 16": f"{found['signature']['16']:.0f}",
        "sentences/s of the service, 16 callers of 1 sentence": f"{single['rate']:.0f}",
        "sentences in a batch, 16 callers of 1 sentence": f"{single['batch']:.1f}",
        "p50 of the signature, 1 sentence": f"{one['signature']:.0f} ms",
        "added by the service, 1 caller": f"{one['difference']:.1f} ms",
        "seconds until ready, without warm-up": f"{cold['ready']:.0f}",
        "seconds of the first request, without warm-up": f"{cold['first']:.2f}",
        "seconds until ready, with warm-up": f"{warm['ready']:.0f}",
        "seconds of the first request, with warm-up": f"{warm['first']:.2f}",
        "MiB of the service after its start": f"{memory['start']:,.0f}",
        "MiB after all loops": f"{memory['loops']:,.0f}",
        "MiB after more requests (their number)": f"{memory['end']:,.0f} ({memory['requests']:,})",
    }


def table(found):
    """Returns the lines of a Markdown table with a column for each export."""
    columns = {name: cells(each) for name, each in found.items()}
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for row in next(iter(columns.values())):
        lines.append(f"| {row} | {' | '.join(column.get(row, '') for column in columns.values())} |")
    return lines


def loops(name, found):
    """Returns the lines of a Markdown table of an export's closed and open loops."""
    lines = [
        f"| {name} | sentences/s | p50 ms | p95 ms | p99 ms | sentences in a batch |",
        "|---|---|---|---|---|---|",
    ]
    rows = {
        f"{callers} caller{'s' * (callers != '1')}, requests of {sentences}": values
        for sentences, each in found["callers"].items()
        for callers, values in each.items()
    }
    for sentences, values in found["open"].items():
        rows[f"{values['requests']:.1f} requests a second of {sentences}"] = values
    for label, values in rows.items():
        times = " | ".join(f"{values[name]:,.0f}" for name in ("p50", "p95", "p99"))
        lines.append(f"| {label} | {values['rate']:.0f} | {times} | {values['batch']:.1f} |")
    return lines


def draw(figure, found):
    """Draws the service's share of the signature's best rate against the number of callers."""
    axes = figure.subplots(1, 2, sharey=True)
    for panel, sentences in zip(axes, ("1", "16"), strict=True):
        for (name, values), (color, marker, dashes) in zip(found.items(), STYLES[: len(found)], strict=True):
            rows, best = values["callers"][sentences], max(values["signature"].values())
            shares = [each["rate"] / best for each in rows.values()]
            line = {"color": color, "marker": marker, "linestyle": dashes}
            panel.plot(list(map(int, rows)), shares, label=name, **line)
        panel.axhline(1, color="#555555", linewidth=1)
        panel.set_title(f"requests of {sentences} sentence{'s' if sentences != '1' else ''}")
        panel.set_xscale("log", base=2)
        panel.set(xlabel="callers", xticks=list(map(int, rows)), xticklabels=list(rows))
        panel.grid(alpha=0.3)
    axes[0].set(ylabel="sentences/s over the signature's best", ylim=(0, None))
    axes[1].legend(loc="lower right", frameon=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="figures; the name is that of the line")
    parser.add_argument("--to", type=Path, metavar="PNG", help="the picture")
    options = parser.parse_args()
    found = {path.stem.removeprefix("serving_"): json.loads(path.read_text()) for path in options.files}
    print("\n".join(table(found)))
    for name, each in found.items():
        print("", *loops(name, each), sep="\n")
    if not options.to:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.5), layout="constrained")
    draw(figure, found)
    for path in (options.to, options.to.with_suffix(".svg")):
        figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
