"""Times updates of the translation model in every kind, interleaved batch by batch; prints a table, asserts nothing.

    python benchmarks/training.py
    python benchmarks/training.py --embedding_size 64 --state_size 128 --batch_size 32
    python benchmarks/training.py --dtypes float32 mixed_bfloat16
    NEMATUS=/path/to/v0.3 NEMATUS_PYTHON=/path/to/its/python python benchmarks/training.py

All kinds, of a patched copy of the baseline, and where it is given the real Nematus, update in turn on the same padded
batches of sentences of 10 to 45 words, so that whatever else the machine does falls on all alike. Columns: the median
of seconds per update; the median, over the updates, of the ratio to none in the same dtype, and of that to Nematus of
the same kind, or to its none where it has no such kind; GFLOP/s, counted from the model's matrix products on the padded
batches; their share of the rate of one large float32 product in the same run; the most seconds that the first update
on a width takes, compilation included; and, with --memory, the peak memory in MiB of a process that makes these updates
alone.
"""

import argparse
import collections
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

ROOT = Path(__file__).resolve().parents[1]
KINDS = ["none", "layernorm", "rmsnorm", "prmsnorm"]
NEMATUS, NEMATUS_KINDS = "Nematus v0.3", ("none", "layernorm")
SIZES = {"embedding_size": 256, "state_size": 512, "vocabulary": 8000, "batch_size": 80, "batches": 6}


def patch_baseline(folder):
    """Puts a patched copy of the baseline into a folder, from where it is imported."""
    subprocess.run(["cp", "-r", str(ROOT / "nmt"), folder], check=True)
    subprocess.run(
        [sys.executable, str(ROOT / "patches" / "apply.py"), "apply", folder], check=True, stdout=subprocess.DEVNULL
    )
    sys.path[:0] = [folder, str(ROOT)]


def make_batches(count, batch_size, vocabulary):
    """Returns batches of sentence pairs of 10 to 45 words, sorted by length and padded to the widths of training."""
    from nmt.data import Batch, bucket_widths

    generator = np.random.default_rng(0)
    widths = np.array([width for width in bucket_widths(46) if width > 10])
    batches = []
    for longest in np.linspace(10, 45, count + 1).astype(int)[1:]:
        width = widths[widths > longest].min()
        sides = []
        for _ in range(2):
            lengths = generator.integers(max(10, longest - 4), longest + 1, batch_size)
            mask = np.arange(width) <= lengths[:, np.newaxis]  # the end counted
            ids = generator.integers(2, vocabulary, (batch_size, width)) * (np.arange(width) < lengths[:, np.newaxis])
            sides += [ids.astype(np.int32), mask.astype(np.float32)]
        batches.append(Batch(*sides))
    return batches


def our_update(kind, dtype, options):
    """Returns a function that makes one update of a new model with a batch, and the model."""
    from nmt.config import make_config
    from nmt.rnnsearch import Rates, RNNSearch
    from nmt.update import Update

    sizes = {"embedding_size": options.embedding_size, "state_size": options.state_size}
    sides = ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset")
    files = {**dict.fromkeys(sides, "-"), "dictionaries": ["-", "-"]}
    config = make_config({**files, **sizes, "layer_normalization_type": kind, "dtype": dtype})
    keras.utils.set_random_seed(1)
    model = RNNSearch(options.vocabulary, options.vocabulary, **sizes, normalization=kind, rates=Rates())
    update, number = Update(model, config), itertools.count(1)
    return lambda batch: update(batch, next(number)), model


def nematus_worker(batches, options, kind, folder):
    """Starts the real Nematus; returns a function that sends it a line and returns the number it answers."""
    path = f"{folder}/batches.npz"
    np.savez(path, **{f"{i}_{j}": array for i, batch in enumerate(batches) for j, array in enumerate(batch)})
    sizes = (options.embedding_size, options.state_size, options.vocabulary)
    command = [os.environ["NEMATUS_PYTHON"], str(ROOT / "benchmarks" / "nematus_worker.py"), os.environ["NEMATUS"]]
    environment = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
    process = subprocess.Popen(
        [*command, path, *map(str, sizes), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    if process.stdout.readline() != "ready\n":
        sys.exit(f"{' '.join(process.args)} does not start")

    def ask(line):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    return ask


def matmul_flops(model, batch):
    """Returns the floating point operations of the matrix products of one update: forward, and twice that backward."""
    rows, source_time = batch.source.shape
    target_time = batch.target.shape[1]
    times = {"context_to_hidden": source_time, "hidden_to_score": source_time * target_time}
    total = source_time * target_time * 2 * model.decoder.units  # the weighted mean of the context
    for variable in model.trainable_variables:
        layers, name = variable.path.split("/")[1:-1], variable.path.split("/")[-1]
        if len(variable.shape) == 2 and name != "embeddings":
            usual = 1 if "initial_state" in layers else source_time if "encoder" in layers else target_time
            total += int(np.prod(variable.shape)) * times.get(name, usual)
    return 3 * 2 * rows * total


def measure(turns, batches, rounds):
    """Returns the seconds of every update by name, in the same order of batches; of the first; and the matmul rate."""
    square = tf.random.normal([2048, 2048])
    multiply = tf.function(lambda: tf.matmul(square, square))
    turns = {**turns, "matmul": lambda _: timed(lambda: multiply().numpy())}
    first = {name: [turn(i) for i in range(batches)] for name, turn in turns.items()}
    seconds, order = collections.defaultdict(list), list(turns)
    for number in range(rounds * batches):
        shift = number % len(order)
        for name in order[shift:] + order[:shift]:
            seconds[name].append(turns[name](number % batches))
    rate = 2 * 2048**3 / statistics.median(seconds.pop("matmul"))
    return {name: seconds[name] for name in order[:-1]}, first, rate


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_memory(options, kind, dtype):
    """Returns the peak memory in MiB of a process that makes one update with every batch."""
    given = [f"--{name}={value}" for name, value in vars(options).items() if name in SIZES]
    command = [sys.executable, __file__, *given, "--kinds", kind, "--dtypes", dtype, "--alone"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024


def run_alone(options, batches):
    update, _ = our_update(options.kinds[0], options.dtypes[0], options)
    for batch in batches:
        update(batch)
    status = Path("/proc/self/status").read_text()  # getrusage counts the parent's memory too
    print(status.split("VmHWM:")[1].split()[0])


def compare(options, batches, folder):
    """Measures everything and prints the table."""
    ours = {(kind, dtype): our_update(kind, dtype, options) for dtype in options.dtypes for kind in options.kinds}
    turns = {key: lambda i, update=update: timed(lambda: update(batches[i])) for key, (update, _) in ours.items()}
    theirs = [kind for kind in options.kinds if kind in NEMATUS_KINDS] if "NEMATUS" in os.environ else []
    workers = {kind: nematus_worker(batches, options, kind, folder) for kind in theirs}
    turns |= {(kind, NEMATUS): lambda i, kind=kind: workers[kind](str(i)) for kind in theirs}
    seconds, first, rate = measure(turns, len(batches), options.rounds)
    print(f"tensorflow {tf.__version__}, {os.cpu_count()} cores, one large product {rate / 1e9:.0f} GFLOP/s")
    print(f"{'':26}{'s/update':>9}{'/ none':>8}{'/ Nematus':>10}{'GFLOP/s':>8}{'share':>7}{'first s':>9}{'MiB':>7}")
    some_model = next(iter(ours.values()))[1]
    flops = [matmul_flops(some_model, batch) for batch in batches] * options.rounds
    for (kind, dtype), taken in seconds.items():
        speed = statistics.median(f / s for f, s in zip(flops, taken, strict=True))
        columns = [f"{statistics.median(taken):9.4f}", ratio(taken, seconds.get(("none", dtype)), 8)]
        columns += [ratio(taken, seconds.get((kind, NEMATUS), seconds.get(("none", NEMATUS))), 10)]
        columns += [f"{speed / 1e9:8.0f}{speed / rate:7.2f}{max(first[kind, dtype]):9.1f}"]
        if options.memory:
            mib = workers[kind]("memory") / 1024 if dtype == NEMATUS else peak_memory(options, kind, dtype)
            columns.append(f"{mib:7.0f}")
        print(f"{kind:11}{dtype:15}{''.join(columns)}", flush=True)


def ratio(above, below, width):
    """Returns the median of the quotients of two lists, as text."""
    if below is None:
        return " " * width
    return f"{statistics.median(a / b for a, b in zip(above, below, strict=True)):{width}.3f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=[*KINDS, "l2norm"])
    parser.add_argument("--dtypes", nargs="+", default=["float32"], choices=["float32", "mixed_bfloat16"])
    parser.add_argument("--rounds", type=int, default=5, help="times that each batch is used")
    parser.add_argument("--memory", action="store_true", help="measure memory too, each alone")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        patch_baseline(folder)
        batches = make_batches(options.batches, options.batch_size, options.vocabulary)
        if options.alone:
            run_alone(options, batches)
        else:
            compare(options, batches, folder)


if __name__ == "__main__":
    main()
