"""Prints the Markdown tables of the logs that benchmarks wrote with --json.

    python benchmarks/tables.py benchmarks/results/recurrent.json benchmarks/results/fold.json

The pages in docs/ have these tables. layer_figures.py and serving_figures.py print those of the layer and the service.
"""

import argparse
import json
from pathlib import Path
from statistics import median

KINDS = {"layer": '`"layer"`', "rms": '`"rms"`', "partial rms": '`"rms"`, partial', "none": "`normalization=None`"}


def ratio(above, below):
    """Returns the median over the rounds of the ratio of two times."""
    return median(a / b for a, b in zip(above, below, strict=True))


def added(above, below):
    """Returns the median over the rounds of the difference of two times."""
    return median(a - b for a, b in zip(above, below, strict=True))


def markdown(heads, rows):
    """Returns the lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def _without_empty(heads, rows):
    """Returns the lines of a table without the columns that have no cells."""
    used = [at for at in range(len(heads)) if not at or any(row[at] for row in rows)]
    return markdown([heads[at] for at in used], [[row[at] for at in used] for row in rows])


def recurrent(found):
    """Returns the times over that of Keras's GRU and, of norms, the added time over that which LayerNorm adds."""
    modes = found["figures"]

    def cell(seconds, kind):
        over = f"{ratio(seconds[kind], seconds['keras GRU']):.2f}"
        if kind == "none":
            return over
        adds, layer_adds = (added(seconds[name], seconds["none"]) for name in (kind, "layer"))
        return f"{over} / {adds / layer_adds:.2f}"

    heads = ["", *({"graph": "tf.function", "xla": "XLA"}[mode] for mode in modes)]
    rows = [
        [KINDS[kind], *(cell(modes[mode], kind) for mode in modes)] for kind in ("none", "layer", "rms", "partial rms")
    ]
    return [markdown(heads, rows)]


def convert(found):
    """Returns the time of the given model over that of the folded one."""
    labels = {"gru": "bidirectional GRUs with LayerNorm inside", "transformer": "pre-LN Transformer encoder, 8 heads"}
    rows = [
        [labels[name], *(f"{ratio(mode['before'], mode['after']):.2f}" for mode in each["seconds"].values())]
        for name, each in found["figures"].items()
    ]
    return [markdown(["", "tf.function", "XLA"], rows)]


def fold(found):
    """Returns a table of the models that `fold_layer_norm` folds, and one of those that get our layer."""
    tables = []
    for function, title in (
        ("fold_layer_norm", "inference, `fold_layer_norm`"),
        ("replace_rms_norm", "training step, `replace_rms_norm`"),
    ):
        rows = [
            [
                name,
                str(each["converted"]),
                str(sum(each["left"].values())),
                *(f"{1e3 * median(each['seconds'][when]):.1f}" for when in ("before", "after")),
                f"{ratio(each['seconds']['after'], each['seconds']['before']):.2f}",
                f"{each['difference']:.1e}",
            ]
            for name, each in found["figures"].items()
            if each["converts"] == function
        ]
        tables.append(
            markdown([title, "converted", "left", "ms before", "ms after", "after over before", "difference"], rows)
        )
    return tables


def training(found):
    """Returns the seconds of an update by dtype and kind."""

    def spread(quartiles):
        return "" if quartiles is None else f" ± {(quartiles[1] - quartiles[0]) / 2:.3f}"

    def cells(dtype, kind, each):
        over = "" if each["ratio"] is None else f"{each['ratio']:.3f}{spread(each['ratio_quartiles'])}"
        nematus = "" if each["ratio_nematus"] is None else f"{each['ratio_nematus']:.2f}"
        memory = "" if each["mib"] is None else f"{each['mib']:,.0f} ({each['mib_start']:,.0f})"
        return [f"{kind}, {dtype}", f"{each['seconds']:.3f}", over, nematus, f"{each['share']:.2f}", memory]

    heads = ["", "seconds", "over none", "over Nematus", "share of the product's rate", "MiB (after imports)"]
    names = {"mixed_bfloat16": "bfloat16"}
    rows = [
        cells(names.get(dtype, dtype), kind, each)
        for dtype, kinds in found["updates"].items()
        for kind, each in kinds.items()
    ]
    return [_without_empty(heads, rows)]


def peers(found):
    """Returns the seconds of an update of each system."""
    heads = ["", "seconds", "over ours in float32", "tokens/s", "first update, s", "MiB (after imports)"]
    rows = [
        [
            each["system"],
            f"{each['s/update']:.3f} ± {each['+-']:.3f}",
            "" if each["/ ours"] is None else f"{each['/ ours']:.2f}",
            f"{each['tokens/s']:,.0f}",
            f"{each['first s']:.1f}",
            f"{each['MiB']:,.0f} ({each['start']:,.0f})",
        ]
        for each in found["figures"]
    ]
    return [markdown(heads, rows)]


def peers_quality(found):
    """Returns the BLEU of each system after each number of minutes."""
    heads = ["minutes", *(f"{system}: {what}" for system in ("ours", "JoeyNMT") for what in ("updates", "BLEU"))]
    rows = {}
    for each in found["figures"]:
        row = rows.setdefault(each["minutes"], [f"{each['minutes']:g}"])
        row += [f"{each['updates']:,}", f"{each['BLEU']:.1f}"]
    return [markdown(heads, rows.values())]


def widths(found):
    """Returns the times by width over that of LayerNorm, for each model and mode."""
    tables = []
    for model, by_width in found["figures"].items():
        for mode in next(iter(by_width.values()))["seconds"]:
            kinds = [kind for kind in next(iter(by_width.values()))["seconds"][mode] if kind != "layernorm"]
            rows = []
            for width, each in by_width.items():
                seconds = each["seconds"][mode]
                share = added(seconds["layernorm"], seconds["none"]) / median(seconds["layernorm"])
                rest = [f"{ratio(seconds[kind], seconds['layernorm']):.3f}" for kind in kinds]
                rows.append(
                    [
                        width,
                        f"{1e3 * median(seconds['layernorm']):.0f}",
                        *rest,
                        f"{share:.1%}",
                        f"{each['bytes'] / 2**20:.0f}",
                    ]
                )
            heads = [f"{model}, {mode}: width", "layernorm, ms", *kinds, "share of LayerNorm", "MiB"]
            tables.append(markdown(heads, rows))
    return tables


def decoding(found):
    """Returns the speed of each engine, over Nematus's where there is one or else over ours, and its translations."""
    speeds, latency, texts = (found["figures"].get(name, {}) for name in ("speeds", "latency", "translations"))
    names = {"ours": "`python -m nmt translate`", "Nematus": "Nematus, `translate.py`"}
    base = "Nematus" if "Nematus" in speeds else "ours"

    def cells(name):
        single = f"{1e3 * median(latency[name]):.0f}" if name in latency else ""
        text = texts.get(name, {})
        equal, bleu = (
            format(text[key], digits) if key in text else "" for key, digits in (("equal", ""), ("bleu", ".2f"))
        )
        rate = [f"{median(speeds[name]):.0f}", f"{ratio(speeds[name], speeds[base]):.2f}"]
        return [names.get(name, name), *rate, single, equal, bleu]

    heads = [_model(found), "sentences/s", f"over {base}"]
    heads += ["one sentence, ms", "equal translations", "BLEU"]
    return [_without_empty(heads, [cells(name) for name in speeds])]


def _model(found):
    """Describes the model of a log in a few words."""
    options, names = found["options"], {"rnn": "RNN", "transformer": "Transformer"}
    return f"{names[options['model_type']]} of {options['state_size']}, {options['layer_normalization_type']}"


def corpora(found):
    """Returns the seconds and memory by the size of the text."""
    rows = [[f"{value:,.0f}" for value in each.values()] for each in found["figures"]]
    return [markdown(list(found["figures"][0]), rows)]


def limits(found):
    """Returns the errors by length, and what stays in memory."""
    errors, growth = found["figures"]["errors"], found["figures"]["growth"]
    columns = next(iter(next(iter(errors.values())).values()))
    heads = ["entries in a row", *(f"{mode}: {column}" for mode in errors for column in columns)]
    lengths = next(iter(errors.values()))
    rows = [
        [f"{int(length):,}", *(f"{errors[mode][length][column]:.0e}" for mode in errors for column in columns)]
        for length in lengths
    ]
    labels = {
        "keras traces": "`keras.layers.RMSNormalization`, 100 traces of 8 norms",
        "traces": "`RMSNormalization`, 100 traces of 8 norms",
        "shapes": "`rms_norm(fused=True)`, 200 shapes",
    }
    kept = [
        [labels[what], f"{each['MB']:.0f}", str(each["graphs"]), f"{each['seconds']:.1f}"]
        for what, each in growth.items()
    ]
    return [markdown(heads, rows), markdown(["", "MB that stay", "graphs that stay", "seconds"], kept)]


def forward(found):
    """Returns the milliseconds of each way to write the forward pass."""
    columns = found["figures"]
    names = list(dict.fromkeys(name for seconds in columns.values() for name in seconds))
    rows = [[name, *(f"{1e3 * median(seconds[name]):.2f}" for seconds in columns.values())] for name in names]
    return [markdown(["ms", *columns], rows)]


def models(found):
    """Returns the time of a training step of whole models, with our layer and with that of Keras."""

    def cells(place, seconds):
        keras, ours, without = (seconds[kind] for kind in ("keras", "ours", "no norm"))
        share = added(keras, without) / median(keras)
        ratios = (f"{ratio(above, keras):.2f}" for above in (ours, seconds["keras, again"]))
        return [*place, f"{1e3 * median(keras):.1f}", f"{1e3 * median(ours):.1f}", f"{share:.0%}", *ratios]

    heads = ["training step", "mode", "ms, Keras's layer", "ms, ours", "share of Keras's norms", "ours over Keras's"]
    rows = [cells((name, mode), each) for name, modes in found["figures"].items() for mode, each in modes.items()]
    return [markdown([*heads, "Keras's again"], rows)]


_KINDS_OF_LOGS = (
    recurrent,
    convert,
    fold,
    training,
    peers,
    peers_quality,
    widths,
    decoding,
    corpora,
    limits,
    forward,
    models,
)
TABLES = {each.__name__: each for each in _KINDS_OF_LOGS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a log")
    for path in parser.parse_args().files:
        if not path.is_file():
            parser.error(f"{path} does not exist; give a log that a benchmark wrote with --json")
        found = json.loads(path.read_text())
        if found.get("benchmark") not in TABLES:
            parser.error(f"{path} is not a log of {', '.join(TABLES)}")
        for lines in TABLES[found["benchmark"]](found):
            print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
