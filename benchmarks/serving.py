"""Measures `python -m nmt serve` against the signature of the same export called in process.

    python benchmarks/serving.py SAVED_MODEL --requests 20000 --json rnn.json < sentences
    python benchmarks/serving_figures.py rnn.json --to serving.png

Prints tables: the signature at several batch sizes; the service with closed loops of callers (each sends its next
request when it has a response) and with open loops (requests at random times, half as many a second as 16 callers in a
closed loop); starting times; memory of the service before and after. Callers, service and signature share the cores of
the machine. Ratios of the service to the signature at its best batch size come from rounds in which they take turns.
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
    try:
        first = ask(service.connect(), [line])
    except BaseException:
        service.close()
        raise
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
    """Returns the figures of closed loops for each number of sentences in a request and of callers."""
    head("callers x sentences", *_NAMES, "sentences in a batch")
    found = {sentences: {} for sentences in SENTENCES}
    for sentences, callers in itertools.product(SENTENCES, CALLERS):
        values = measure_loop(
            service, sentences, lambda c=callers, s=sentences: closed_loop(service, lines, c, s, seconds)
        )
        found[sentences][callers] = row(f"{callers} x {sentences}", values)
    return found


def measure_open(service, lines, rates, seconds):
    """Returns the figures of an open loop for each number of sentences in a request, at its number of requests/s."""
    head("open loop, requests/s x sentences", *_NAMES, "sentences in a batch")
    found = {}
    for sentences, rate in rates.items():
        values = measure_loop(service, sentences, lambda r=rate, s=sentences: open_loop(service, lines, r, s, seconds))
        found[sentences] = {"requests": rate, **row(f"{rate:.1f} x {sentences}", values)}
    return found


def measure_loop(service, sentences, loop):
    """Returns the figures of a loop, with the mean number of sentences in a batch."""
    batches, rows = service.metric("nmt_batch_rows_count"), service.metric("nmt_batch_rows_sum")
    taken, elapsed = loop()
    rows = service.metric("nmt_batch_rows_sum") - rows
    batches = service.metric("nmt_batch_rows_count") - batches
    return {**figures(taken, sentences, elapsed), "batch": rows / batches}


def send_more(service, lines, requests):
    """Sends at least this many requests of one sentence, by 16 callers; returns their number."""
    done = 0
    while done < requests:
        done += len(closed_loop(service, lines, MANY, 1, 5.0)[0])
    return done


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
    memory = {"start": service.memory()}
    found["share"] = measure_share(service, signature, lines, batch, options.seconds)
    found["callers"] = measure_callers(service, lines, options.seconds)
    rates = {sentences: each[MANY]["rate"] / sentences / 2 for sentences, each in found["callers"].items()}
    found["open"] = measure_open(service, lines, rates, options.seconds)
    memory["loops"] = service.memory()
    memory["requests"] = send_more(service, lines, options.requests)
    memory["end"] = service.memory()
    print(f"\nmemory: {memory['start']:.0f} MiB at the start, {memory['loops']:.0f} MiB after all these", end="")
    print(f", {memory['end']:.0f} MiB after {memory['requests']} more requests")
    return {**found, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "saved_model", type=Path, metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement (default: 6)")
    parser.add_argument(
        "--requests", type=int, default=0, help="more requests at the end, to see whether memory grows (default: 0)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    if not lines:
        parser.error("there are no sentences; give a text on standard input")
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
