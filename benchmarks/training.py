"""Times updates of the translation model with each kind of normalization, and prints a table.

    python benchmarks/training.py
    python benchmarks/training.py --embedding_size 64 --state_size 128 --batch_size 32
    python benchmarks/training.py --model_type transformer
    python benchmarks/training.py --dtypes float32 mixed_bfloat16
    python benchmarks/training.py --config FILE.json --batches 10 --rounds 10 --json TIMES.json
    python benchmarks/training.py --baseline FOLDER --kinds none mine
    python benchmarks/training.py --kinds none rmsnorm rmsnorm    # rmsnorm twice, to see the noise
    NEMATUS=/path/to/nematus NEMATUS_PYTHON=/path/to/its/python python benchmarks/training.py

All kinds, and real Nematus if it is given, update a model in turn on the same padded batches, in a new random order
each time, so that other load on the machine affects all of them equally. The kinds come from a patched copy of the
baseline, made for this run, or from the copy that --baseline names. Nematus is v0.3 or master for the RNN, and master
for the Transformer. A Transformer has the size of its embeddings, 3 layers a side, 4 heads, feed-forwards of 4 times
its size, an output table that is the target embedding, and no dropout.

Without --config, the batches are random sentences of 10 to 45 words. With --config, a file for `nmt train --config`,
they are batches of that training; each represents the same number of its updates. A round is one update with each
batch.

Columns:
    s/update    median over the rounds, and half the interquartile range
    / none      ratio to none in the same dtype, with the same two figures
    / Nematus   ratio to Nematus with the same kind, or to its none (Transformer: its layernorm) if it lacks the kind
    GFLOP/s     of the matrix products of the model on the padded batches
    share       of the GFLOP/s of one large float32 product, measured in the same run
    first s     the slowest first update with a batch, which includes compilation
    MiB         with --memory: peak memory of a process that makes these updates alone
    start       of this, its memory when the libraries are imported

--json writes the figures, the options and the widths of the batches. `rounds` has the seconds per update in each round;
the i-th rounds of all kinds were interleaved.
"""

import argparse
import collections
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from nematus_process import nematus_worker
from runner import orders, surroundings
from updates import ROOT, made_up_work, matmul_flops, new_update, patched_baseline, real_work, threads, width

KINDS = ["none", "layernorm", "l2norm", "rmsnorm", "prmsnorm"]
NEMATUS = "Nematus"
# The kinds of Nematus; the first is compared with a kind that Nematus lacks.
NEMATUS_KINDS = {"rnn": ("none", "layernorm"), "transformer": ("layernorm", "rmsnorm")}
SIZES = {"embedding_size": 256, "state_size": 512, "vocabulary": 8000, "batch_size": 80}


def model_options(options):
    """Returns the options of a made-up model, which are also those of Nematus."""
    size = options.embedding_size
    if options.model_type == "rnn":
        return {"embedding_size": size, "state_size": options.state_size}
    rates = {f"transformer_dropout_{place}": 0.0 for place in ("embeddings", "residual", "relu", "attn")}
    return {
        "model_type": "transformer",
        "embedding_size": size,
        "state_size": size,
        "transformer_ffn_hidden_size": 4 * size,
        "transformer_num_heads": 4,
        "transformer_enc_depth": 3,
        "transformer_dec_depth": 3,
        "tie_decoder_embeddings": True,
        **rates,
    }


def measure(turns, batches, rounds):
    """Returns by name the seconds `[rounds, batches]`, by name those of first updates, and the matmul FLOP/s."""
    square = tf.random.normal([2048, 2048])
    multiply = tf.function(lambda: tf.matmul(square, square))
    turns = {**turns, "matmul": lambda _: timed(lambda: multiply().numpy())}
    first = {name: [turn(i) for i in range(batches)] for name, turn in turns.items()}
    seconds = {name: [] for name in turns}
    for number, order in enumerate(itertools.islice(orders(turns), rounds * batches)):
        for name in order:
            seconds[name].append(turns[name](number % batches))
    rate = 2 * 2048**3 / statistics.median(seconds.pop("matmul"))
    return {name: np.reshape(each, [rounds, batches]) for name, each in seconds.items()}, first, rate


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_memory(options, kind, dtype):
    """Returns the peak memory in MiB of a process that runs one update with each batch, and that after its imports."""
    shared = (*SIZES, "model_type", "batches")
    given = [f"--{name}={value}" for name, value in vars(options).items() if name in shared]
    given += [f"--{name}={value}" for name in ("config", "baseline") if (value := vars(options)[name])]
    command = [sys.executable, __file__, *given, "--kinds", kind, "--dtypes", dtype, "--alone"]
    start, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(peak) / 1024, int(start) / 1024


def run_alone(options, work, start):
    update, _ = new_update(work, options.kinds[0], options.dtypes[0])
    for batch in work.batches:
        update(batch)
    print(start, own_memory())


def own_memory():
    """Returns the peak memory of this process in KiB."""
    status = Path("/proc/self/status").read_text()  # getrusage would include the memory of the parent
    return status.split("VmHWM:")[1].split()[0]


def compare(options, work, folder):
    """Measures all kinds and returns what --json writes."""
    from nmt.config import FILES

    batches = work.batches
    kinds = named(options.kinds)
    ours = {(dtype, name): new_update(work, kind, dtype) for dtype in options.dtypes for name, kind in kinds.items()}
    turns = {key: lambda i, update=update: timed(lambda: update(batches[i])) for key, (update, _) in ours.items()}
    known = NEMATUS_KINDS[options.model_type]
    theirs = [kind for kind in kinds if kind in known] if "NEMATUS" in os.environ else []
    workers = {kind: nematus_worker(batches, options, model_options(options), kind, folder) for kind in theirs}
    turns |= {(NEMATUS, kind): lambda i, kind=kind: workers[kind](str(i)) for kind in theirs}
    taken, first, rate = measure(turns, len(batches), options.rounds)
    rounds = {key: seconds.mean(1) for key, seconds in taken.items()}
    some_model = next(iter(ours.values()))[1]
    flops = sum(matmul_flops(some_model, batch) for batch in batches) / len(batches)  # per update
    updates = collections.defaultdict(dict)
    for (dtype, name), seconds in rounds.items():
        kind = kinds[name]
        entry = {"rounds": seconds.tolist()}
        entry["seconds"], entry["seconds_quartiles"] = middle(seconds)
        entry["ratio"], entry["ratio_quartiles"] = ratio(seconds, rounds.get((dtype, "none")))
        entry["ratio_nematus"], _ = ratio(seconds, rounds.get((NEMATUS, kind), rounds.get((NEMATUS, known[0]))))
        entry["gflops"], entry["share"] = flops / entry["seconds"] / 1e9, flops / entry["seconds"] / rate
        entry["first"], entry["mib"], entry["mib_start"] = max(first[dtype, name]), None, None
        if options.memory and dtype != NEMATUS:
            entry["mib"], entry["mib_start"] = peak_memory(options, kind, dtype)
        elif options.memory:
            entry["mib"], entry["mib_start"] = (workers[kind](asked) / 1024 for asked in ("memory", "libraries"))
        updates[dtype][name] = entry
    return {
        "benchmark": "training",
        **surroundings(),
        "cores": os.cpu_count(),
        "threads": threads(),
        "gflops": rate / 1e9,
        "options": {key: work.options[key] for key in work.options if key not in (*FILES, "layer_normalization_type")},
        "widths": [width(batch) for batch in batches],
        "updates": updates,
    }


def named(kinds):
    """Returns the kinds by name. A kind that is given again, to see the noise, has a number in its name."""
    return {f"{kind} {n}" if (n := kinds[: i + 1].count(kind)) > 1 else kind: kind for i, kind in enumerate(kinds)}


def middle(values):
    """Returns the median and the two quartiles."""
    below, median, above = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return median, [below, above]


def ratio(above, below):
    return (None, None) if below is None else middle(above / below)


def show(measured):
    """Prints the table."""
    cores = f"{measured['threads']} of {measured['cores']} cores"
    print(
        f"tensorflow {measured['versions']['tensorflow']}, {cores}, one large product {measured['gflops']:.0f} GFLOP/s"
    )
    heads = ["s/update", "+-", "/ none", "+-", "/ Nematus", "GFLOP/s", "share", "first s", "MiB", "start"]
    widths = [9, 8, 8, 7, 10, 8, 7, 9, 7, 7]
    print(" " * 26 + "".join(f"{head:>{w}}" for head, w in zip(heads, widths, strict=True)))
    for dtype, kinds in measured["updates"].items():
        for kind, entry in kinds.items():
            cells = [f"{entry['seconds']:.4f}", half(entry["seconds_quartiles"], 4)]
            cells += [decimals(entry["ratio"], 3), half(entry["ratio_quartiles"], 3)]
            cells += [decimals(entry["ratio_nematus"], 3), decimals(entry["gflops"], 0), decimals(entry["share"], 2)]
            cells += [decimals(entry["first"], 1), decimals(entry["mib"], 0)]
            cells += [decimals(entry["mib_start"], 0)]
            print(f"{kind:11}{dtype:15}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)))


def decimals(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def half(quartiles, digits):
    """Returns half the interquartile range as text."""
    return "" if quartiles is None else decimals((quartiles[1] - quartiles[0]) / 2, digits)


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model_type", choices=NEMATUS_KINDS, default="rnn", help="ignored with --config")
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="ignored with --config")
    parser.add_argument("--config", metavar="FILE", help="use the sizes and batches of this training")
    parser.add_argument("--batches", type=int, default=6, help="batches in a round")
    parser.add_argument("--baseline", metavar="FOLDER", help="measure this patched copy")
    parser.add_argument("--kinds", nargs="+", default=KINDS, help="kinds of normalization in the copy")
    parser.add_argument("--dtypes", nargs="+", default=["float32"], choices=["float32", "mixed_bfloat16"])
    parser.add_argument("--rounds", type=int, default=5, help="updates with each batch")
    parser.add_argument("--memory", action="store_true", help="also measure memory, in one process for each kind")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.baseline and not Path(options.baseline, "nmt").is_dir():
        parser.error(f"--baseline {options.baseline} contains no nmt; give a folder that was patched with apply.py")
    if "NEMATUS" in os.environ and "NEMATUS_PYTHON" not in os.environ:
        parser.error("NEMATUS is set, but not NEMATUS_PYTHON, its interpreter; set it or unset NEMATUS")
    if options.config and "NEMATUS" in os.environ:
        parser.error("real Nematus does not get the options in --config, such as dropout; unset NEMATUS")
    return options


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        sys.path[:0] = [os.path.abspath(options.baseline or patched_baseline(folder)), str(ROOT)]
        from nmt.errors import UserError
        from nmt.load_tensorflow import load_tensorflow
        from nmt.storage.files import atomic_write, read_json

        load_tensorflow()  # as the commands do
        start = own_memory()
        try:
            if options.config:
                work = real_work(read_json(options.config), options.batches)
            else:
                work = made_up_work(options.batches, options.batch_size, options.vocabulary, **model_options(options))
            if options.alone:
                run_alone(options, work, start)
                return
            measured = compare(options, work, folder)
            if options.json:
                with atomic_write(options.json) as file:
                    file.write(json.dumps(measured, indent=2) + "\n")
            show(measured)
        except UserError as error:
            print(f"training.py: {error}", file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
