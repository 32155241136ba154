"""Prints the Markdown tables of the logs that benchmarks wrote with --json, and draws the steps of
`fit`.

    python benchmarks/tables.py benchmarks/results/layer.json benchmarks/results/fold.json
    python benchmarks/tables.py benchmarks/results/fit.json --png docs/fit.png            # needs matplotlib

The pages in docs/ have these tables; tests compare them.
"""

import argparse
import itertools
import json
import sys
from operator import truediv
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
    "layer": '`"layer"`',
    "rms": '`"rms"`',
    "partial rms": '`"rms"`, partial',
    "none": "`normalization=None`",
}
MODELS = ["none", "layernorm", "layernorm, again", "rmsnorm", "prmsnorm"]
NAMES = {
    "graph": "tf.function",
    "xla": "XLA",
    "forward+backward": "both",
    "mixed_bfloat16": "bfloat16",
}
# Colours of Okabe and Ito. Ours and LayerNorm have those of the reports.
BARS = {NONE: "#000000", OURS: "#D55E00", KERAS: "#009E73", LAYERNORM: "#0072B2"}


def added(above, below):
    """Returns the median over the rounds of the difference of two times."""
    return median(a - b for a, b in zip(above, below, strict=True))


def markdown(heads, rows):
    """Returns the lines of a table, without the columns that have no cells."""
    rows = list(rows)
    used = [at for at in range(len(heads)) if not at or any(row[at] for row in rows)]
    cells = ([row[at] for at in used] for row in (heads, ["---"] * len(heads), *rows))
    return [f"| {' | '.join(each)} |" for each in cells]


def over_with_spread(above, below):
    """Returns the median of the ratios, and half the range of their middle half."""
    low, middle, high = quantiles(map(truediv, above, below), method="inclusive")
    return f"{middle:.3f} ± {(high - low) / 2:.3f}"


def layer(found):
    """Returns a table of ratios for each dtype."""
    tables = {}
    for cell in found["figures"]:
        over, layernorm = (
            ratio(cell["seconds"][name], cell["seconds"][KERAS]) for name in (OURS, LAYERNORM)
        )
        row = tables.setdefault(cell["dtype"], {}).setdefault(str(cell["shape"]), {})
        row[", ".join(NAMES.get(cell[name], cell[name]) for name in ("mode", "passes"))] = (
            f"{over:.2f} / {layernorm:.2f}"
        )
    return [
        markdown(
            [dtype, *next(iter(rows.values()))],
            ([shape, *row.values()] for shape, row in rows.items()),
        )
        for dtype, rows in tables.items()
    ]


def by_process(rounds, seconds, name):
    """Returns the ratio of a layer to that of Keras in each process; each measured this many rounds."""
    starts = range(0, len(seconds[name]), rounds)
    return [
        ratio(seconds[name][at : at + rounds], seconds[KERAS][at : at + rounds]) for at in starts
    ]


def fit(found):
    """Returns the time of a step by width: ratios to Keras's layer, then milliseconds in the default mode."""
    modes = list(next(iter(found["figures"].values())))

    def over(seconds, units):
        each = by_process(found["options"]["rounds"][units], seconds, OURS)
        return f"{ratio(seconds[OURS], seconds[KERAS]):.2f} ({min(each):.2f} to {max(each):.2f})"

    def cells(units, by_mode):
        times = [f"{1e3 * median(by_mode['default'][name]):.1f}" for name in BARS]
        ratios = (over(by_mode[mode], units) if mode in by_mode else "" for mode in modes)
        return [f"{units} ({found['options']['depths'][units]})", *ratios, *times]

    heads = ["units (layers)", *(f"ours over Keras, {mode}" for mode in modes)]
    heads += ["no norm, ms", "ours, ms", "Keras, ms", "LayerNorm, ms"]
    return [markdown(heads, itertools.starmap(cells, found["figures"].items()))]


def recurrent(found):
    """Returns the times over that of Keras's GRU and, of norms, the added time over that which LayerNorm adds."""

    def cell(seconds, kind):
        over = f"{ratio(seconds[kind], seconds['keras GRU']):.2f}"
        if kind == "none":
            return over
        adds, layer_adds = (added(seconds[name], seconds["none"]) for name in (kind, "layer"))
        return f"{over} / {adds / layer_adds:.2f}"

    modes = found["figures"]
    rows = [
        [KINDS[kind], *(cell(each, kind) for each in modes.values())]
        for kind in ("none", "layer", "rms", "partial rms")
    ]
    return [markdown(["", *(NAMES[mode] for mode in modes)], rows)]


def fold(found):
    """Returns a table of the models that `fold_layer_norm` folds, and one of those that get our layer."""
    heads = ["converted", "left", "ms before", "ms after", "after over before", "difference"]
    rows = {"inference, `fold_layer_norm`": [], "training step, `replace_rms_norm`": []}
    for name, each in found["figures"].items():
        before, after = (each["seconds"][when] for when in ("before", "after"))
        times = [
            f"{1e3 * median(before):.1f}",
            f"{1e3 * median(after):.1f}",
            f"{ratio(after, before):.2f}",
        ]
        counts = [str(each["converted"]), str(each["left"])]
        (title,) = (title for title in rows if each["converts"] in title)
        rows[title].append([name, *counts, *times, f"{each['difference']:.1e}"])
    return [markdown([title, *heads], each) for title, each in rows.items()]


def training(found):
    """Returns the seconds of an update by dtype and kind."""

    def cells(dtype, kind, each, none):
        over = "" if none is None else over_with_spread(each["rounds"], none["rounds"])
        nematus, share = (
            _digits(each.get(name)) for name in ("ratio_nematus", "share")
        )  # only older logs have them
        memory = "" if each.get("mib") is None else f"{each['mib']:,.0f} ({each['mib_start']:,.0f})"
        name = f"{kind}, {NAMES.get(dtype, dtype)}"
        first = f"{each['first']:.1f}" if "share" not in each else ""
        return [name, f"{median(each['rounds']):.3f}", over, nematus, share, first, memory]

    heads = ["", "seconds", "over none", "over Nematus", "share of the product's rate"]
    heads += ["first update, s", "MiB (after imports)"]
    updates = found["updates"].items()
    rows = (
        cells(dtype, *each, kinds.get("none")) for dtype, kinds in updates for each in kinds.items()
    )
    return [markdown(heads, rows)]


def peers(found):
    """Returns the seconds of an update of each system."""
    heads = ["", "seconds", "over ours in float32", "tokens/s", "first update, s"]
    figures = found["figures"]
    words = found["options"]["words"]

    def cells(name, each):
        low, middle, high = quantiles(each["rounds"], method="inclusive")
        over = ratio(each["rounds"], figures["ours float32"]["rounds"])
        times = [f"{middle:.3f} ± {(high - low) / 2:.3f}", f"{over:.2f}", f"{words / middle:,.0f}"]
        return [name, *times, f"{each['first']:.1f}"]

    return [markdown(heads, itertools.starmap(cells, figures.items()))]


def decoding(found):
    """Returns the speed of each engine, over Nematus's where there is one or else over ours, and its translations."""
    speeds, latency, texts = (
        found["figures"].get(name, {}) for name in ("speeds", "latency", "translations")
    )
    names = {"ours": "`python -m nmt translate`", "Nematus": "Nematus, `translate.py`"}
    base = "Nematus" if "Nematus" in speeds else "ours"

    def cells(name):
        text = texts.get(name, {})
        single = f"{1e3 * median(latency[name]):.0f}" if name in latency else ""
        rate = [f"{median(speeds[name]):.0f}", f"{ratio(speeds[name], speeds[base]):.2f}"]
        return [
            names.get(name, name),
            *rate,
            single,
            str(text.get("equal", "")),
            _digits(text.get("bleu")),
        ]

    options = found["options"]
    types = {"rnn": "RNN", "transformer": "Transformer"}
    model = f"{types[options['model_type']]} of {options['state_size']}, {options['layer_normalization_type']}"
    heads = [model, "sentences/s", f"over {base}", "one sentence, ms", "equal translations", "BLEU"]
    return [markdown(heads, map(cells, speeds))]


def _digits(value):
    return "" if value is None else f"{value:.2f}"


def serving(found):
    """Returns a table of the loops of callers, and one of what else was measured of a service."""
    found = found["figures"]
    names = ("p50", "p95", "p99")
    rows = {}
    for sentences, each in found["callers"].items():
        for callers, values in each.items():
            rows[f"{callers} caller{'s' * (callers != '1')}, requests of {sentences}"] = values
    cells = [
        [
            label,
            f"{each['rate']:.0f}",
            *(f"{each[name]:,.0f}" for name in names),
            f"{each['batch']:.1f}",
        ]
        for label, each in rows.items()
    ]
    loops = markdown(
        ["", "sentences/s", *(f"{name} ms" for name in names), "sentences in a batch"], cells
    )
    start = found["start"]
    memory = found["memory"]
    facts = [
        [
            "seconds until ready and of the first request",
            f"{start['ready']:.0f}, {start['first']:.2f}",
        ]
    ]
    told = ", ".join(f"{memory[when]:,.0f}" for when in ("start", "loops", "end"))
    facts.append(
        [f"MiB at the start, after all loops, and after {memory['requests']:,} more requests", told]
    )
    return [loops, markdown(["", "value"], facts)]


def replicas(found):
    """Returns the seconds of an update by the number of processes, and what they reduce."""
    heads = [
        "",
        "processes",
        "s an update",
        "speed-up",
        "share of the reduction",
        "MB dense",
        "MB of rows",
    ]
    rows = []
    for model, counts in found["figures"].items():
        for number, each in counts.items():
            seconds, reduction = (each["rounds"][name] for name in ("seconds", "reduction"))
            speedup = (
                _digits(ratio(counts["1"]["rounds"]["seconds"], seconds)) if "1" in counts else ""
            )
            sizes = [f"{each[name] / 1e6:.1f}" for name in ("dense", "rows")]
            rows.append(
                [
                    model,
                    number,
                    f"{median(seconds):.2f}",
                    speedup,
                    f"{ratio(reduction, seconds):.0%}",
                    *sizes,
                ]
            )
    return [markdown(heads, rows)]


def gpu(found):
    """Returns the milliseconds of gradients of models, then those that the GPU computes for each pass of the layer."""
    models = []
    layers = {}
    for entry in found["groups"]:
        group = entry["group"]
        kinds = entry["kinds"]
        if group["what"] == "layer":
            busy = (
                kinds[name]["busy"] or median(kinds[name]["rounds"])
                for name in (OURS, KERAS, LAYERNORM)
            )
            times = layers.setdefault((group["shape"], group["dtype"]), {})
            times[group["passes"]] = " / ".join(f"{1e3 * each:.3f}" for each in busy)
        else:
            rounds = {name: each["rounds"] for name, each in kinds.items()}
            times = [f"{1e3 * median(rounds[name]):.2f}" for name in MODELS]
            over = f"{ratio(rounds['rmsnorm'], rounds['layernorm']):.2f}"
            models.append([group["what"].removeprefix("gradient of the "), over, *times])
    rows = [
        [*place, *(times.get(name, "") for name in ("forward", "backward"))]
        for place, times in layers.items()
    ]
    return [
        markdown(["model", "rmsnorm over layernorm", *(f"{name}, ms" for name in MODELS)], models),
        markdown(["input", "dtype", "forward, ms", "backward, ms"], rows),
    ]


_MAKERS = (layer, fit, recurrent, fold, training, peers, decoding, serving, replicas, gpu)
TABLES = {each.__name__: each for each in _MAKERS}


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
    """Draws the time of a step of `fit` by width over that with Keras's layer, in the default mode."""
    widths = {units: modes["default"] for units, modes in found["figures"].items()}
    for place, (name, color) in enumerate(BARS.items()):
        heights = [ratio(seconds[name], seconds[KERAS]) for seconds in widths.values()]
        bars = panel.bar(
            [at + 0.2 * place - 0.3 for at in range(len(widths))],
            heights,
            0.18,
            color=color,
            label=name,
        )
        panel.bar_label(bars, fmt="%.2f", fontsize=8)
    labels = [f"{units} units,\n{found['options']['depths'][units]} layers" for units in widths]
    panel.set(
        xticks=range(len(widths)),
        xticklabels=labels,
        ylabel="time over Keras's RMSNorm",
        ylim=(0, 1.45),
    )
    panel.set_title("a training step of residual layers on a CPU: lower is better", fontsize=10)
    panel.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, frameon=False, fontsize=8
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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

        figure = Figure(figsize=(8, 3.5), layout="constrained")
        draw(figure.subplots(), found)
        figure.savefig(options.png, dpi=150)


if __name__ == "__main__":
    main()
