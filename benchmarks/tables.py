"""Prints the Markdown tables of logs that benchmarks wrote, and draws the steps of `fit`.

    python benchmarks/tables.py benchmarks/results/layer.json benchmarks/results/fold.json
    python benchmarks/tables.py benchmarks/results/fit.json --png docs/fit.png   # needs matplotlib

The pages in docs/ have these tables; a test compares them.
"""

import argparse
import itertools
import json
import sys
from operator import sub, truediv
from pathlib import Path
from statistics import median, quantiles

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.runner import ratio, write_log

OURS = "rmsnorm_tf"
KERAS = "keras RMSNormalization"
LAYERNORM = "keras LayerNormalization"
AGAIN = "keras RMSNormalization, again"
NONE = "no norm"
KINDS = {
    "none": "`normalization=None`",
    "layer": '`"layer"`',
    "rms": '`"rms"`',
    "partial rms": '`"rms"`, partial',
}
NAMES = {
    "graph": "tf.function",
    "xla": "XLA",
    "forward+backward": "both",
    "mixed_bfloat16": "bfloat16",
    "rnn": "RNN",
    "transformer": "Transformer",
}
ENGINES = {"ours": "`python -m nmt translate`", "Nematus": "Nematus, `translate.py`"}
# Colours of Okabe and Ito. Ours and LayerNorm have those of the reports.
BARS = {
    NONE: ("no norm", "#000000"),
    OURS: ("ours", "#D55E00"),
    KERAS: ("Keras", "#009E73"),
    LAYERNORM: ("LayerNorm", "#0072B2"),
}
TITLES = {
    "fold_layer_norm": "inference, `fold_layer_norm`",
    "replace_rms_norm": "training step, `replace_rms_norm`",
}
CELL = ("dtype", "shape", "mode", "passes")
DECODED = ("speeds", "latency", "translations")


def table(rows):
    """Returns the lines of a table of rows by heading; a cell that a row lacks is empty."""
    heads = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    cells = [heads, ["---"] * len(heads)]
    for row in rows:
        cells.append([row.get(head, "") for head in heads])
    return [f"| {' | '.join(line)} |" for line in cells]


def over(seconds, base):
    """Returns the ratio to a base."""
    return f"{ratio(seconds, base):.2f}"


def ms(seconds, digits=1):
    """Returns the median in milliseconds."""
    return f"{1e3 * median(seconds):.{digits}f}"


def with_spread(values):
    """Returns the median, and half the range of the middle half."""
    low, middle, high = quantiles(values, method="inclusive")
    return f"{middle:.3f} ± {(high - low) / 2:.3f}"


def layer(found):
    """Returns a table of ratios for each dtype."""
    tables = {}
    for cell in found["figures"]:
        seconds = cell["seconds"]
        dtype, shape, mode, passes = (str(cell[name]) for name in CELL)
        ratios = [over(seconds[name], seconds[KERAS]) for name in (OURS, LAYERNORM)]
        row = tables.setdefault(dtype, {}).setdefault(shape, {dtype: shape})
        row[f"{NAMES.get(mode, mode)}, {NAMES.get(passes, passes)}"] = " / ".join(ratios)
    return [table(rows.values()) for rows in tables.values()]


def fit(found):
    """Returns the time of a step by width: ratios to Keras's layer, then milliseconds."""
    rows = []
    for units, modes in found["figures"].items():
        row = {"units (layers)": f"{units} ({found['options']['depths'][units]})"}
        for mode, seconds in modes.items():
            cell = by_process(seconds, found["options"]["rounds"][units])
            row[f"ours over Keras, {mode}"] = cell
        times = {f"{head}, ms": ms(modes["default"][name]) for name, (head, _) in BARS.items()}
        rows.append(row | times)
    return [table(rows)]


def by_process(seconds, rounds):
    """Returns the ratio to Keras's layer, and the range of the ratios of the processes."""
    pairs = list(zip(seconds[OURS], seconds[KERAS], strict=True))
    parts = [pairs[at : at + rounds] for at in range(0, len(pairs), rounds)]
    each = [ratio(*zip(*part, strict=True)) for part in parts]
    return f"{over(*zip(*pairs, strict=True))} ({min(each):.2f} to {max(each):.2f})"


def recurrent(found):
    """Returns times over Keras's GRU; of norms, the added time over what LayerNorm adds."""
    rows = []
    for kind, name in KINDS.items():
        row = {"": name}
        for mode, seconds in found["figures"].items():
            cell = over(seconds[kind], seconds["keras GRU"])
            row[NAMES[mode]] = cell if kind == "none" else f"{cell} / {share(seconds, kind):.2f}"
        rows.append(row)
    return [table(rows)]


def share(seconds, kind):
    """Returns what a norm adds over what LayerNorm adds, medians of the rounds' differences."""
    norm, layer = (map(sub, seconds[each], seconds["none"]) for each in (kind, "layer"))
    return median(norm) / median(layer)


def fold(found):
    """Returns a table of the models that are folded, and one of those that get our layer."""
    tables = {name: [] for name in TITLES}
    for name, each in found["figures"].items():
        seconds = each["seconds"]
        row = {
            TITLES[each["converts"]]: name,
            "converted": str(each["converted"]),
            "left": str(each["left"]),
            "ms before": ms(seconds["before"]),
            "ms after": ms(seconds["after"]),
            "after over before": over(seconds["after"], seconds["before"]),
            "difference": f"{each['difference']:.1e}",
        }
        tables[each["converts"]].append(row)
    return list(map(table, tables.values()))


def training(found):
    """Returns the seconds of an update by dtype and kind; older logs have more columns."""
    rows = []
    for dtype, kinds in found["updates"].items():
        none = kinds.get("none")
        for kind, each in kinds.items():
            ratios = none and map(truediv, each["rounds"], none["rounds"])
            row = {
                "": f"{kind}, {NAMES.get(dtype, dtype)}",
                "seconds": f"{median(each['rounds']):.3f}",
                "over none": none and with_spread(ratios),
                "over Nematus": digits(each.get("ratio_nematus")),
                "share of the product's rate": digits(each.get("share")),
                "first update, s": "share" not in each and f"{each['first']:.1f}",
                "MiB (after imports)": each.get("mib")
                and f"{each['mib']:,.0f} ({each['mib_start']:,.0f})",
            }
            rows.append({head: cell for head, cell in row.items() if cell})
    return [table(rows)]


def digits(value):
    return value and f"{value:.2f}"


def peers(found):
    """Returns the seconds of an update of each system."""
    rows = []
    for name, each in found["figures"].items():
        row = {
            "": name,
            "seconds": with_spread(each["rounds"]),
            "over ours in float32": over(
                each["rounds"], found["figures"]["ours float32"]["rounds"]
            ),
            "tokens/s": f"{found['options']['words'] / median(each['rounds']):,.0f}",
            "first update, s": f"{each['first']:.1f}",
        }
        rows.append(row)
    return [table(rows)]


def decoding(found):
    """Returns the speed of each engine, over Nematus's or else over ours, and its translations."""
    speeds, latency, texts = (found["figures"].get(name, {}) for name in DECODED)
    options = found["options"]
    base = "Nematus" if "Nematus" in speeds else "ours"
    model = f"{NAMES[options['model_type']]} of {options['state_size']}"
    rows = []
    for name, speed in speeds.items():
        text = texts.get(name, {})
        row = {
            f"{model}, {options['layer_normalization_type']}": ENGINES.get(name, name),
            "sentences/s": f"{median(speed):.0f}",
            f"over {base}": over(speed, speeds[base]),
            "one sentence, ms": name in latency and ms(latency[name], 0),
            "equal translations": "equal" in text and str(text["equal"]),
            "BLEU": digits(text.get("bleu")),
        }
        rows.append({head: cell for head, cell in row.items() if cell})
    return [table(rows)]


def serving(found):
    """Returns a table of the loops of callers, and one of what else was measured of a service."""
    rows = []
    for sentences, loops in found["figures"]["callers"].items():
        for callers, each in loops.items():
            row = {
                "": f"{callers} caller{'s' * (callers != '1')}, requests of {sentences}",
                "sentences/s": f"{each['rate']:.0f}",
                "p50 ms": f"{each['p50']:,.0f}",
                "p95 ms": f"{each['p95']:,.0f}",
                "p99 ms": f"{each['p99']:,.0f}",
                "sentences in a batch": f"{each['batch']:.1f}",
            }
            rows.append(row)
    start = found["figures"]["start"]
    memory = found["figures"]["memory"]
    when = f"at the start, after all loops, and after {memory['requests']:,} more requests"
    facts = {
        "seconds until ready and of the first request": "{ready:.0f}, {first:.2f}".format(**start),
        f"MiB {when}": "{start:,.0f}, {loops:,.0f}, {end:,.0f}".format(**memory),
    }
    return [table(rows), table([{"": name, "value": value} for name, value in facts.items()])]


def once(found):
    """Returns the tables that a script which is gone printed of its log."""
    return found["tables"]


_ALL = (
    layer,
    fit,
    recurrent,
    fold,
    training,
    peers,
    decoding,
    serving,
    once,
)
TABLES = {each.__name__: each for each in _ALL}


def publish(options, benchmark, figures, **more):
    """Prints the tables of what a script found, and writes its log if it was called with --json.

    The log has the script's options that are numbers, and `more`.
    """
    numbers = {name: value for name, value in vars(options).items() if type(value) in (int, float)}
    found = {"options": {**numbers, **more}, "figures": figures}
    for lines in TABLES[benchmark](
        json.loads(json.dumps(found))
    ):  # names are strings, as in the file
        print("", *lines, sep="\n")
    write_log(options.json, benchmark, **found)


def draw(panel, found):
    """Draws the time of a step of `fit` by width over that with Keras's layer, by default."""
    widths = {units: modes["default"] for units, modes in found["figures"].items()}
    for place, (name, (_, color)) in enumerate(BARS.items()):
        heights = [ratio(seconds[name], seconds[KERAS]) for seconds in widths.values()]
        middles = [at + 0.23 * place - 0.345 for at in range(len(widths))]
        bars = panel.bar(middles, heights, 0.22, color=color, label=name)
        panel.bar_label(bars, fmt="%.2f", fontsize=8)
    labels = [f"{units} units,\n{found['options']['depths'][units]} layers" for units in widths]
    panel.set_xticks(range(len(widths)), labels)
    panel.set(ylabel="time over Keras's RMSNorm", ylim=(0, 1.45))
    panel.set_title("A training step on a CPU: lower is better", fontsize=11)
    below = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.16)}
    panel.legend(**below, ncols=2, frameon=False, fontsize=10)


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a log")
    parser.add_argument("--png", type=Path, help="draw the steps of `fit`")
    options = parser.parse_args()
    for path in options.files:
        if not path.is_file():
            parser.error(f"{path} does not exist; give a log that a benchmark wrote with --json")
        found = json.loads(path.read_text())
        if found.get("benchmark") not in TABLES:
            parser.error(f"{path} is not a log of {', '.join(TABLES)}")
        for lines in TABLES[found["benchmark"]](found):
            print(f"{path.stem}:", *lines, sep="\n", end="\n\n")
    if options.png:
        if found["benchmark"] != "fit":
            parser.error("--png draws a log of fit")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.2, 4), layout="constrained")
        draw(figure.subplots(), found)
        figure.savefig(options.png, dpi=150)


if __name__ == "__main__":
    main()
