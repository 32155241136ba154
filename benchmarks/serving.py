"""Measures `python -m nmt serve` against the signature of the same export called in process.

    python benchmarks/serving.py SAVED_MODEL --json rnn.json < sentences      # about three minutes an export
    python benchmarks/serving_figures.py rnn.json --to serving.png

Prints tables: the signature at several batch sizes; the service with closed loops of callers (each sends its next
request when it has a response) and with an open loop (requests at a mean rate); starting times; memory of the service
before and after. Callers, service and signature share the cores of the machine. Ratios of the service to the signature
at its best batch size come from rounds in which they take turns.
"""

import argparse
import itertools
import json
import os
import sys
from contextlib import closing
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer
from serving_load import Service, alternately, ask, bare, closed_loop, open_loop

CALLERS = (1, 4, 16, 64)
MANY = 16  # callers whose rate is compared with that of the signature
ROUNDS = 6
SENTENCES = (1, 16)
_NAMES = ("sentences/s", "p50 ms", "p95", "p99")


def head(*names):
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)


def figures(taken, sentences, seconds):
    """Returns the figures of a row from the seconds of each of its requests and of the whole measurement."""
    p50, p95, p99 = np.percentile(taken, [50, 95, 99]) * 1000
    return {"rate": len(taken) * sentences / seconds, "p50": p50, "p95": p95, "p99": p99}


def row(name, values):
    print(f"| {' | '.join([name, *(f'{value:.1f}' for value in values.values())])} |", flush=True)
    return values


def measure_signature(signature, lines, seconds):
    """Returns the figures of the signature for each batch size."""
    head("signature, batch of", *_NAMES)
    found = {}
    for batch in CALLERS:
        taken = bare(signature, lines, batch, seconds)
        found[batch] = row(str(batch), figures(taken, batch, sum(taken)))
    return found


def measure_start(saved_model, line, warm):
    """Returns the service and the seconds until it is ready and of its first request."""
    service = Service(saved_model, warm)
    first = ask(service.connect(), [line])
    name = "with warm-up" if warm else "without warm-up"
    print(f"{name}: ready after {service.seconds_to_start:.1f} s, first request {first * 1000:.0f} ms", flush=True)
    return service, {"ready": service.seconds_to_start, "first": first}


def measure_one_caller(signature, service, lines):
    """Returns the median milliseconds of the signature and of what the service adds, in turn."""
    taken = alternately(signature, service, lines, 60)
    own, more = np.median(taken[:, 0]) * 1000, np.median(taken[:, 1] - taken[:, 0]) * 1000
    print(f"one caller, in turn with the signature: p50 of the signature {own:.1f} ms, of the difference {more:.1f} ms")
    return {"signature": own, "difference": more}


def measure_callers(service, lines, seconds):
    """Returns the figures of closed loops for each number of sentences and callers."""
    head("callers x sentences", *_NAMES, "sentences in a batch")
    found = {sentences: {} for sentences in SENTENCES}
    for sentences, callers in itertools.product(SENTENCES, CALLERS):
        batches, rows = service.metric("nmt_batch_rows_count"), service.metric("nmt_batch_rows_sum")
        taken, elapsed = closed_loop(service, lines, callers, sentences, seconds)
        values = figures(taken, sentences, elapsed)
        rows = service.metric("nmt_batch_rows_sum") - rows
        values["batch"] = rows / (service.metric("nmt_batch_rows_count") - batches)
        found[sentences][callers] = row(f"{callers} x {sentences}", values)
    return found


def measure_open(service, lines, rate, seconds):
    """Returns the figures of an open loop of single sentences at a rate."""
    head("open loop, sentences/s", *_NAMES)
    taken, elapsed = open_loop(service, lines, rate, seconds)
    return {"asked": rate, **row(f"{rate:.0f}", figures(taken, 1, elapsed))}


def measure_memory(service, lines, requests):
    """Returns the number of requests that 16 callers sent, at least this many, and the memory after them in MiB."""
    done = 0
    while done < requests:
        done += len(closed_loop(service, lines, 16, 1, 5.0)[0])
    return done, service.memory()


def measure_share(service, signature, lines, batch, seconds):
    """Returns the rate of the service over that of the signature, in turn, for requests of each size: one a round."""
    found = {sentences: [] for sentences in SENTENCES}
    for _ in range(ROUNDS):
        taken = bare(signature, lines, batch, seconds)
        signature_rate = len(taken) * batch / sum(taken)
        for sentences, shares in found.items():
            taken, elapsed = closed_loop(service, lines, MANY, sentences, seconds)
            shares.append(len(taken) * sentences / elapsed / signature_rate)
    print(f"\nsentences/s of {MANY} callers over those of the signature with batches of {batch}, in turn:")
    for sentences, shares in found.items():
        low, middle, high = np.percentile(shares, [25, 50, 75])
        print(f"requests of {sentences}: median {middle:.2f}, quartiles {low:.2f} and {high:.2f} of {ROUNDS} rounds")
    return {"batch": batch, "rounds": found}


def measure_service(service, signature, lines, options, batch):
    """Returns all figures of a running service; `batch` is the best batch size of the signature."""
    found = {"one": measure_one_caller(signature, service, lines)}
    memory = [service.memory()]
    found["share"] = measure_share(service, signature, lines, batch, options.seconds)
    found["callers"] = measure_callers(service, lines, options.seconds)
    found["open"] = measure_open(service, lines, max(1.0, found["callers"][1][16]["rate"] / 2), options.seconds)
    memory.append(service.memory())
    print(f"\nmemory: {memory[0]:.0f} MiB before, {memory[1]:.0f} MiB after all these")
    if options.requests:
        done, last = measure_memory(service, lines, options.requests)
        memory.append(last)
        print(f"{last:.0f} MiB after {done} more requests of 16 callers")
    return {**found, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "saved_model", type=Path, metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement (default: 6)")
    parser.add_argument(
        "--requests", type=int, default=0, help="more requests, to see whether memory grows (default: 0)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    signature = tf.saved_model.load(str(options.saved_model)).signatures["serving_default"]

    alone = {batch: each["rate"] for batch, each in measure_signature(signature, lines, options.seconds / 2).items()}
    print()
    service, cold = measure_start(options.saved_model, lines[0], warm=False)
    service.close()
    service, warm = measure_start(options.saved_model, lines[0], warm=True)
    with closing(service):
        found = measure_service(service, signature, lines, options, max(alone, key=alone.get))
    found |= {"signature": alone, "without warm-up": cold, "with warm-up": warm}
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
