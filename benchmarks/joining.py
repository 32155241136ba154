"""Measures what `export --batch` gains where several threads call one SavedModel, a sentence each.

    python -m nmt export --model model --to plain -n
    python -m nmt export --model model --to joined -n --batch
    python benchmarks/joining.py plain joined --json benchmarks/results/joining.json < sentences

Each caller calls again when it has its translation. Both exports take turns, and so do the numbers of callers.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer
from serving_load import in_threads

NAMES = ("plain", "joined")


def calls(signature, lines, callers, seconds):
    """Returns sentences/s, and the 50th and the 99th percentile of the milliseconds of a call."""
    begin = time.perf_counter()

    def call(i):
        taken = []
        for number in itertools.count(i * 97):
            start = time.perf_counter()
            if start > begin + seconds:
                return taken
            signature(sources=tf.constant([lines[number % len(lines)]]))["translations"].numpy()
            taken.append(time.perf_counter() - start)

    taken = in_threads(callers, call)
    return [len(taken) / (time.perf_counter() - begin), *(1000 * np.percentile(taken, [50, 99]))]


def measure(signatures, lines, options):
    """Returns the median figures of each number of callers and each export, by name."""
    for signature in signatures.values():
        calls(signature, lines, max(options.callers), 2)
    found = {}
    for _, callers, (name, signature) in itertools.product(range(options.rounds), options.callers, signatures.items()):
        found.setdefault((callers, name), []).append(calls(signature, lines, callers, options.seconds))
    return {
        str(callers): {
            name: [statistics.median(each) for each in zip(*found[callers, name], strict=True)] for name in NAMES
        }
        for callers in options.callers
    }


def table(found):
    """Returns the rows of the table, in Markdown."""
    head = ["callers", *(f"{what}, {name}" for name in NAMES for what in ("sentences/s", "p50 ms", "p99 ms")), "ratio"]
    rows = [
        [
            callers,
            *(f"{value:.0f}" for name in NAMES for value in each[name]),
            f"{each['joined'][0] / each['plain'][0]:.2f}",
        ]
        for callers, each in found.items()
    ]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plain", help="an export without --batch")
    parser.add_argument("joined", help="an export of the same model with --batch")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=5.0, help="of a measurement (default: 5)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    if missing := [path for path in (options.plain, options.joined) if not Path(path, "saved_model.pb").is_file()]:
        parser.error(f"{' and '.join(missing)} holds no SavedModel; `python -m nmt export` writes one")
    lines = [line.rstrip("\n") for line in sys.stdin]
    if not lines:
        parser.error("there are no sentences; give a text on standard input")
    models = {name: tf.saved_model.load(getattr(options, name)) for name in NAMES}
    signatures = {name: model.signatures["serving_default"] for name, model in models.items()}
    texts = tf.constant(lines[:64])
    translations = [signature(sources=texts)["translations"].numpy().tolist() for signature in signatures.values()]
    if translations[0] != translations[1]:
        print("joining.py: the exports translate differently; give two of one model", file=sys.stderr)
        sys.exit(2)
    found = measure(signatures, lines, options)
    print("\n".join(table(found)))
    if options.json:
        options.json.write_text(json.dumps({"callers": found, "tensorflow": tf.__version__}, indent=1) + "\n")


if __name__ == "__main__":
    main()
