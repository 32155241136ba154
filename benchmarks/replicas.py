"""Times updates by 1, 2 and 4 processes of one core each, and what they reduce, and prints a table.

    python benchmarks/replicas.py
    python benchmarks/replicas.py --models rnn --processes 1 2 --rounds 10 --json FIGURES.json
    python benchmarks/replicas.py --embedding_size 64 --state_size 128 --batch_size 32 --batches 2

The processes make the updates of a real training: each takes its part of a batch, they reduce their gradients over
loopback, and all make the same step. A batch has the same sentences for any number of processes. All numbers of
processes take turns, in a new random order each round, and each process has its own core. By default, there are
at most as many processes as cores. Models are those of benchmarks/training.py, with LayerNorm.

Loopback is no network: its reductions use the cores that also compute. docs/maintainers/scaling.md estimates networks.

The table has the median seconds of an update, of the slowest process; the speed-up over one process; seconds of waiting
for the others' gradients, and of the reduction after that, with its share; and the MB that a process reduces as whole
gradients (dense) and as rows of embeddings.
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tables
import tensorflow as tf
from runner import ROOT, orders, ratio, surroundings
from updates import SIZES, made_up_work, model_options, new_update

COUNTS = (1, 2, 4)


class Meter:
    """Replicas that measure their reductions."""

    def __init__(self, replicas):
        self._replicas, self.count, self.rank = replicas, replicas.count, replicas.rank
        self.reset()

    def reset(self):
        self.wait = self.reduction = 0.0
        self.dense = self.rows = 0

    def sum(self, values):
        start = time.perf_counter()
        self._replicas.any(False)  # waits for all
        ready = time.perf_counter()
        found = self._replicas.sum(values)
        self.reduction += time.perf_counter() - ready
        self.wait += ready - start
        for each in tf.nest.flatten(values):
            if isinstance(each, tf.IndexedSlices):
                self.rows += size(each.values) + size(each.indices)
            else:
                self.dense += size(each)
        return found


def size(tensor):
    return tensor.dtype.size * tensor.shape.num_elements()


def serve(options):
    """Makes an update with each batch whenever a line comes, and answers with a line of figures."""
    sys.path.insert(0, str(ROOT))
    from nmt.training.replicas import connect
    from nmt.training.update import split

    meter = Meter(connect())
    options.model_type = options.models[0]
    work = made_up_work(options.batches, options.batch_size, options.vocabulary, **model_options(options))
    update, _ = new_update(work, "layernorm", replicas=meter)
    batches = [split(batch._make(map(tf.constant, batch)), meter.count)[meter.rank] for batch in work.batches]
    print("ready", flush=True)
    for _ in sys.stdin:
        meter.reset()
        start = time.perf_counter()
        for batch in batches:
            update(batch)
        figures = {name: getattr(meter, name) for name in ("wait", "reduction", "dense", "rows")}
        figures["seconds"] = time.perf_counter() - start
        print(json.dumps({name: each / len(batches) for name, each in figures.items()}), flush=True)


class Group:
    """Processes that train one model together."""

    def __init__(self, options, model, count, cores):
        sys.path.insert(0, str(ROOT))
        from nmt.commands.processes import reserved_ports

        shared = (*SIZES, "batches")
        command = [sys.executable, __file__, "--worker", "--models", model]
        command += [f"--{name}={value}" for name, value in vars(options).items() if name in shared]
        with contextlib.ExitStack() as held:
            ports = [held.enter_context(each).getsockname()[1] for each in reserved_ports(count)]
        workers = [f"localhost:{port}" for port in ports]
        self._processes = []
        for rank, core in enumerate(cores[:count]):
            config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            environment = {**os.environ, "TF_CONFIG": json.dumps(config), "TF_NUM_INTRAOP_THREADS": "1"}
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            os.sched_setaffinity(process.pid, {core})  # before it starts threads, which inherit it
            self._processes.append(process)

    def wait_until_ready(self):
        self._read()

    def round(self):
        """Makes an update with each batch. Returns the figures of an update."""
        for process in self._processes:
            process.stdin.write("\n")
            process.stdin.flush()
        found = [json.loads(line) for line in self._read()]
        return {
            "seconds": max(each["seconds"] for each in found),
            "wait": sum(each["wait"] for each in found) / len(found),
            "reduction": max(each["reduction"] for each in found),
            "dense": found[0]["dense"],
            "rows": found[0]["rows"],
        }

    def close(self):
        for process in self._processes:
            process.kill()
            process.communicate()

    def _read(self):
        lines = [process.stdout.readline() for process in self._processes]
        if not all(lines):
            sys.exit("replicas.py: a process has ended; its message is above")
        return lines


def measure(options, model):
    """Returns the figures of a model by number of processes."""
    cores = sorted(os.sched_getaffinity(0))
    groups = {}
    try:
        for count in options.processes:  # one after another: they need all cores to start
            groups[count] = Group(options, model, count, cores)
            groups[count].wait_until_ready()
            groups[count].round()  # compiles
        found = {count: [] for count in groups}
        for order in itertools.islice(orders(groups), options.rounds):
            for count in order:
                found[count].append(groups[count].round())
    finally:
        for group in groups.values():
            group.close()
    return {count: summary(rounds, found.get(1)) for count, rounds in found.items()}


def summary(rounds, alone):
    """Returns the figures of a number of processes from its rounds; `alone` has those of one process, or is `None`."""
    seconds, wait, reduction = ([each[name] for each in rounds] for name in ("seconds", "wait", "reduction"))
    return {
        "rounds": {"seconds": seconds, "wait": wait, "reduction": reduction},
        **{name: median(each) for name, each in (("seconds", seconds), ("wait", wait), ("reduction", reduction))},
        "speedup": ratio([each["seconds"] for each in alone], seconds) if alone else None,
        "share": ratio(reduction, seconds),
        "dense": rounds[0]["dense"],
        "rows": rounds[0]["rows"],
    }


def table(models):
    """Returns the lines of the table."""
    heads = ["", "processes", "s/update", "speed-up", "wait s", "reduce s", "share", "MB dense", "MB rows"]
    rows = [
        [model, str(count), f"{each['seconds']:.4f}", "" if each["speedup"] is None else f"{each['speedup']:.2f}"]
        + [f"{each['wait']:.4f}", f"{each['reduction']:.4f}", f"{each['share']:.3f}"]
        + [f"{each[name] / 1e6:.2f}" for name in ("dense", "rows")]
        for model, counts in models.items()
        for count, each in counts.items()
    ]
    return tables.markdown(heads, rows)


def parse():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=("rnn", "transformer"), default=["rnn", "transformer"])
    parser.add_argument("--processes", nargs="+", type=int, default=[count for count in COUNTS if count <= cores])
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--batches", type=int, default=1, help="batches in a round")
    parser.add_argument("--rounds", type=int, default=8, help="updates with each batch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.worker and not 1 <= min(options.processes) <= max(options.processes) <= cores:
        parser.error(f"--processes must be from 1 to {cores}, the number of cores")
    return options


def main():
    options = parse()
    if options.worker:
        serve(options)
        return
    measured = {
        **surroundings(),
        "options": {name: getattr(options, name) for name in (*SIZES, "batches", "rounds")},
        "models": {model: measure(options, model) for model in options.models},
    }
    print(*table(measured["models"]), sep="\n")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
