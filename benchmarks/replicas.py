"""Times updates by 1, 2 and 4 processes of one core each, and what they reduce, and prints a table.

    python benchmarks/replicas.py --models rnn --processes 1 2 --rounds 10 --json FIGURES.json

Each process takes its part of a batch, they reduce their gradients over loopback, and all make the
same step. All numbers of processes take turns. Loopback is no network: its reductions use the cores
that also compute. docs/maintainers/scaling.md estimates networks.

The table has the seconds of an update, of the slowest process; the speed-up over one process; the
share of the reduction, after waiting for the others' gradients; and the MB that a process reduces
as whole gradients (dense) and as rows of embeddings.
"""

import argparse
import contextlib
import itertools
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tables
import tensorflow as tf
from runner import ROOT, Worker, answer, orders, parser_of, turn
from updates import SIZES, made_up_work, model_options, new_update


class Meter:
    """Replicas that measure their reductions."""

    def __init__(self, replicas):
        self._replicas = replicas
        self.count = replicas.count
        self.rank = replicas.rank
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
    """Answers each request with the figures of an update with each batch."""
    sys.path.insert(0, str(ROOT))
    from nmt.training.replicas import connect
    from nmt.training.update import split

    meter = Meter(connect())
    options.model_type = options.models[0]
    work = made_up_work(
        options.batches, options.batch_size, options.vocabulary, **model_options(options)
    )
    update, _ = new_update(work, "layernorm", replicas=meter)
    batches = [
        split(batch._make(map(tf.constant, batch)), meter.count)[meter.rank]
        for batch in work.batches
    ]

    def measured(_):
        meter.reset()
        figures = {"seconds": turn(lambda: [update(batch) for batch in batches], 1)}
        figures |= {name: getattr(meter, name) for name in ("wait", "reduction", "dense", "rows")}
        return {name: each / len(batches) for name, each in figures.items()}

    answer(measured)


def start(options, model, count):
    """Starts processes that train one model together, a core each, and returns them."""
    sys.path.insert(0, str(ROOT))
    from nmt.commands.processes import reserved_ports

    command = [sys.executable, __file__, "--worker", "--models", model]
    command += [f"--{name}={vars(options)[name]}" for name in (*SIZES, "batches")]
    with contextlib.ExitStack() as held:
        ports = [held.enter_context(each).getsockname()[1] for each in reserved_ports(count)]
    workers = []
    for rank, core in enumerate(sorted(os.sched_getaffinity(0))[:count]):
        task = {"cluster": {"worker": [f"localhost:{port}" for port in ports]}}
        task["task"] = {"type": "worker", "index": rank}
        environment = {**os.environ, "TF_CONFIG": json.dumps(task), "TF_NUM_INTRAOP_THREADS": "1"}
        workers.append(Worker(command, env=environment))
        os.sched_setaffinity(
            workers[-1].process.pid, {core}
        )  # before it starts threads, which inherit it
    return workers


def one_round(workers):
    """Lets all processes of a group make an update with each batch.

    Returns the figures of an update.
    """
    for worker in workers:
        worker.send("round")
    found = [worker.receive() for worker in workers]
    seconds, reduction = (max(each[name] for each in found) for name in ("seconds", "reduction"))
    wait = sum(each["wait"] for each in found) / len(found)
    return {**found[0], "seconds": seconds, "reduction": reduction, "wait": wait}


def measure(options, model):
    """Returns the figures of a model by number of processes."""
    groups = {}
    found = {count: [] for count in options.processes}
    with contextlib.ExitStack() as running:
        for count in found:  # one after another: they need all cores to start
            groups[count] = list(map(running.enter_context, start(options, model, count)))
            one_round(groups[count])  # compiles
        for order in itertools.islice(orders(groups), options.rounds):
            for count in order:
                found[count].append(one_round(groups[count]))
    return {
        count: {
            "rounds": {
                name: [each[name] for each in rounds] for name in ("seconds", "wait", "reduction")
            },
            **{name: rounds[0][name] for name in ("dense", "rows")},
        }
        for count, rounds in found.items()
    }


def parse():
    cores = len(os.sched_getaffinity(0))
    parser = parser_of(__doc__, models=["rnn", "transformer"], **SIZES, batches=1, rounds=8)
    given = {
        "choices": range(1, cores + 1),
        "default": [count for count in (1, 2, 4) if count <= cores],
    }
    parser.add_argument("--processes", nargs="+", type=int, **given)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.worker:
        serve(options)
        return
    try:
        models = {model: measure(options, model) for model in options.models}
    except RuntimeError as error:
        sys.exit(f"replicas.py: {error}; its message is above")
    tables.publish(options, "replicas", models)


if __name__ == "__main__":
    main()
