"""Measures `python -m nmt serve` against the signature of the same export called in process, and prints tables.

    python benchmarks/serving.py SAVED_MODEL --requests 20000 --json benchmarks/results/serving_rnn.json < sentences

Measures the signature at several batch sizes; the service with closed loops of callers (each sends its next request
when it has a response) and with open loops (requests at random times, half as many a second as 16 callers in a closed
loop); starting times; memory. Callers, service and signature share the cores of the machine. Ratios to the signature
come from rounds in which they take turns.
"""

import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tables
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer
from runner import ROOT, parser_of, turn

CALLERS = (1, 4, 16, 64)
MANY = 16  # callers whose rate is compared with that of the signature
ROUNDS = 6
THREADS = 64  # of an open loop
SENTENCES = (1, 16)


class Service:
    """The service in a process of its own, with one model."""

    def __init__(self, saved_model, warm=True):
        self._folder = tempfile.TemporaryDirectory()
        version = Path(self._folder.name, "model", "1")
        version.mkdir(parents=True)
        for path in saved_model.iterdir():
            if warm or path.name != "assets.extra":
                (version / path.name).symlink_to(path.resolve())
        start = time.perf_counter()
        command = [sys.executable, "-m", "nmt", "serve", self._folder.name, "--port", "0", "--timeout", "120"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for line in self._process.stderr:
            if found := re.search(r"http://\S+:(\d+)", line):
                self._port = int(found[1])
                break
            print(line, end="", file=sys.stderr)
        else:
            sys.exit("serving.py: the service ended before it was ready; its messages are above")
        self.seconds_to_start = time.perf_counter() - start
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)

    def metric(self, name):
        with closing(self.connect()) as connection:
            connection.request("GET", "/metrics")
            return float(re.search(rf"^{name} (\S+)$", connection.getresponse().read().decode(), re.MULTILINE)[1])

    def memory(self):
        """Returns resident MiB."""
        return self.metric("process_resident_memory_bytes") / 2**20

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        assert self._process.wait(60) == 0
        self._folder.cleanup()


def ask(connection, texts):
    """Sends a request and returns its seconds."""
    start = time.perf_counter()
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/models/model:predict", json.dumps({"inputs": texts}), headers)
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    return time.perf_counter() - start


def taken_from(lines, start, count):
    """Returns lines; after the last comes the first."""
    return [lines[(start + i) % len(lines)] for i in range(count)]


def in_threads(count, function):
    """Runs `function(i)` in as many threads and returns their results in one list."""
    with ThreadPoolExecutor(count) as threads:
        return list(itertools.chain.from_iterable(threads.map(function, range(count))))


def closed_loop(service, lines, callers, sentences, seconds):
    """Returns the seconds of every request of callers who send one after the other, and of the whole loop."""
    begin = time.perf_counter()

    def call(i):
        connection, taken = service.connect(), []
        for start in itertools.count(i * 97, sentences):
            if time.perf_counter() > begin + seconds:
                return taken
            taken.append(ask(connection, taken_from(lines, start, sentences)))

    return in_threads(callers, call), time.perf_counter() - begin


def open_loop(service, lines, rate, sentences, seconds):
    """Sends `rate` requests a second at random times; returns the seconds of every request, and of the whole loop.

    A request's seconds are those from its due time to its response.
    """
    first = time.perf_counter() + 0.1
    due = first + np.sort(np.random.default_rng(0).uniform(0, seconds, round(rate * seconds)))

    def call(i):
        connection, taken = service.connect(), []
        for number in range(i, len(due), THREADS):
            time.sleep(max(0.0, due[number] - time.perf_counter()))
            ask(connection, taken_from(lines, number * sentences, sentences))
            taken.append(time.perf_counter() - due[number])
        return taken

    return in_threads(THREADS, call), time.perf_counter() - first


def call(signature, texts):
    """Calls the signature in this process and returns the seconds."""
    return turn(lambda: signature(sources=tf.constant(texts))["translations"].numpy(), 1)


def rate_alone(signature, lines, batch, seconds):
    """Returns the sentences/s of the signature."""
    taken, starts = [], itertools.count(0, batch)
    while sum(taken) < seconds or len(taken) < 3:
        taken.append(call(signature, taken_from(lines, next(starts), batch)))
    return len(taken) * batch / sum(taken)


def measure_start(saved_model, line, warm):
    """Returns the seconds until a service is ready and of its first request."""
    with Service(saved_model, warm) as service:
        return {"ready": service.seconds_to_start, "first": ask(service.connect(), [line])}


def measure_one_caller(signature, service, lines):
    """Returns the median milliseconds of the signature and of what the service adds, in turn."""
    connection = service.connect()
    taken = [(call(signature, [line]), ask(connection, [line])) for line in taken_from(lines, 0, 60)]
    own, served = 1000 * np.array(taken).T
    return {"signature": np.median(own), "difference": np.median(served - own)}


def measure_loop(loop, service, lines, number, sentences, seconds):
    """Returns the figures of a loop, with the mean number of sentences in a batch."""
    names = ("nmt_batch_rows_count", "nmt_batch_rows_sum")
    before = [service.metric(name) for name in names]
    taken, elapsed = loop(service, lines, number, sentences, seconds)
    batches, rows = (service.metric(name) - old for name, old in zip(names, before, strict=True))
    p50, p95, p99 = (1000 * np.percentile(taken, [50, 95, 99])).tolist()
    found = {"rate": len(taken) * sentences / elapsed, "p50": p50, "p95": p95, "p99": p99, "batch": rows / batches}
    print(found, flush=True)
    return found


def measure_share(service, signature, lines, batch, seconds):
    """Returns the rate of the service over that of the signature, in turn, for requests of each size: one a round."""
    found = {sentences: [] for sentences in SENTENCES}
    for _ in range(ROUNDS):
        alone = rate_alone(signature, lines, batch, seconds)
        for sentences, shares in found.items():
            taken, elapsed = closed_loop(service, lines, MANY, sentences, seconds)
            shares.append(len(taken) * sentences / elapsed / alone)
    return {"batch": batch, "rounds": found}


def measure_service(service, signature, lines, options, batch):
    """Returns all figures of a running service; `batch` is the best batch size of the signature."""
    seconds, found = options.seconds, {"one": measure_one_caller(signature, service, lines)}
    memory = {"start": service.memory()}
    found["share"] = measure_share(service, signature, lines, batch, seconds)
    found["callers"], found["open"] = {size: {} for size in SENTENCES}, {}
    for size, callers in itertools.product(SENTENCES, CALLERS):
        found["callers"][size][callers] = measure_loop(closed_loop, service, lines, callers, size, seconds)
    for size, each in found["callers"].items():
        rate = each[MANY]["rate"] / size / 2
        found["open"][size] = {"requests": rate, **measure_loop(open_loop, service, lines, rate, size, seconds)}
    memory |= {"loops": service.memory(), "requests": 0}
    while memory["requests"] < options.requests:
        memory["requests"] += len(closed_loop(service, lines, MANY, 1, 5.0)[0])
    return {**found, "memory": {**memory, "end": service.memory()}}


def main():
    parser = parser_of(__doc__, seconds=6.0)
    parser.add_argument("saved_model", type=Path, metavar="SAVED_MODEL", help="what `python -m nmt export` wrote")
    parser.add_argument("--requests", type=int, default=0, help="more of them at the end, to see whether memory grows")
    options = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    if not lines:
        parser.error("there are no sentences; give a text on standard input")
    signature = tf.saved_model.load(str(options.saved_model)).signatures["serving_default"]
    alone = {batch: rate_alone(signature, lines, batch, options.seconds / 2) for batch in CALLERS}
    found = {"signature": alone}
    found["without warm-up"] = measure_start(options.saved_model, lines[0], warm=False)
    found["with warm-up"] = measure_start(options.saved_model, lines[0], warm=True)
    with Service(options.saved_model) as service:
        found |= measure_service(service, signature, lines, options, max(alone, key=alone.get))
    tables.publish(options, "serving", found)


if __name__ == "__main__":
    main()
