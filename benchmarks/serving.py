"""Measures `python -m nmt serve` against the signature of the same export called in process.

    python benchmarks/serving.py SAVED_MODEL < sentences      # about three minutes an export

Prints tables: the signature at several batch sizes; the service with closed loops of callers (each sends its next
request when it has a response) and with an open loop (requests at a stated rate); starting times; memory of the service
before and after. Callers, service and signature share the cores of the machine. The signature is measured before and
after the service, and the better value counts.
"""

import argparse
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
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

CALLERS = (1, 4, 16, 64)
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
        command = [sys.executable, "-m", "nmt", "serve", self._folder.name, "--port", "0"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        for line in self._process.stderr:
            if found := re.search(r"http://\S+:(\d+)", line):
                self._port = int(found[1])
                break
        self.seconds_to_start = time.perf_counter() - start
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)

    def metric(self, name):
        connection = self.connect()
        connection.request("GET", "/metrics")
        found = re.search(rf"^{name} (\S+)$", connection.getresponse().read().decode(), re.MULTILINE)
        connection.close()
        return float(found[1])

    def memory(self):
        """Returns resident MiB."""
        return self.metric("process_resident_memory_bytes") / 2**20

    def stop(self):
        self._process.terminate()
        assert self._process.wait(60) == 0
        self._folder.cleanup()


def ask(connection, texts):
    """Sends a request and returns its seconds."""
    start = time.perf_counter()
    connection.request("POST", "/v1/models/model:predict", json.dumps({"inputs": texts}))
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    return time.perf_counter() - start


def in_threads(count, function):
    """Runs `function(i)` in as many threads and returns their results in one list."""
    results = [None] * count

    def run(i):
        results[i] = function(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(itertools.chain.from_iterable(results))


def closed_loop(service, lines, callers, sentences, seconds):
    """Returns the seconds of every request of callers who send one after the other, and those of all together."""
    begin = time.perf_counter()
    end = begin + seconds

    def call(i):
        connection, taken = service.connect(), []
        for start in itertools.count(i * 97, sentences):
            if time.perf_counter() > end:
                return taken
            texts = [lines[(start + j) % len(lines)] for j in range(sentences)]
            taken.append(ask(connection, texts))

    return in_threads(callers, call), time.perf_counter() - begin


def open_loop(service, lines, rate, seconds):
    """Sends single sentences at a stated rate; returns seconds as `closed_loop` does.

    A request's seconds are those from its due time to its response.
    """
    first = time.perf_counter() + 0.1
    due = first + np.cumsum(np.random.default_rng(0).exponential(1 / rate, int(rate * seconds)))
    numbers = iter(range(len(due)))
    lock = threading.Lock()

    def call(_):
        connection, taken = service.connect(), []
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return taken
            time.sleep(max(0.0, due[number] - time.perf_counter()))
            ask(connection, [lines[number % len(lines)]])
            taken.append(time.perf_counter() - due[number])

    return in_threads(64, call), time.perf_counter() - first


def alternately(signature, service, lines, rounds):
    """Returns the seconds of the signature and of the service for single sentences, `[rounds, 2]`."""
    import tensorflow as tf

    connection, taken = service.connect(), []
    for number in range(rounds):
        text = lines[number % len(lines)]
        begin = time.perf_counter()
        signature(sources=tf.constant([text]))["translations"].numpy()
        taken.append((time.perf_counter() - begin, ask(connection, [text])))
    return np.array(taken)


def bare(signature, lines, batch, seconds):
    """Returns the seconds of every call of the signature in this process."""
    import tensorflow as tf

    taken, end = [], time.perf_counter() + seconds
    for start in itertools.count(0, batch):
        if time.perf_counter() > end and len(taken) > 2:
            return taken
        texts = tf.constant([lines[(start + j) % len(lines)] for j in range(batch)])
        begin = time.perf_counter()
        signature(sources=texts)["translations"].numpy()
        taken.append(time.perf_counter() - begin)


def row(name, taken, sentences, seconds, *more):
    ms = np.percentile(taken, [50, 95, 99]) * 1000
    cells = [name, f"{len(taken) * sentences / seconds:.1f}", *(f"{x:.1f}" for x in ms), *more]
    print(f"| {' | '.join(cells)} |", flush=True)


def head(*names):
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "saved_model", type=Path, metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement (default: 6)")
    parser.add_argument(
        "--requests", type=int, default=0, help="more requests, to see whether memory grows (default: 0)"
    )
    arguments = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

    signature = tf.saved_model.load(str(arguments.saved_model)).signatures["serving_default"]
    names = ("sentences/s", "p50 ms", "p95", "p99")

    def measure_bare():
        head("signature, batch of", *names)
        rates = {}
        for batch in CALLERS:
            taken = bare(signature, lines, batch, arguments.seconds / 2)
            row(str(batch), taken, batch, sum(taken))
            rates[batch] = len(taken) * batch / sum(taken)
        return rates

    before = measure_bare()
    cold = Service(arguments.saved_model, warm=False)
    first = ask(cold.connect(), lines[:1])
    print(f"\nwithout warm-up: ready after {cold.seconds_to_start:.1f} s, first request {first * 1000:.0f} ms")
    cold.stop()
    service = Service(arguments.saved_model)
    first = ask(service.connect(), lines[:1])
    print(f"with warm-up: ready after {service.seconds_to_start:.1f} s, first request {first * 1000:.0f} ms")
    taken = alternately(signature, service, lines, 60)
    own, more = np.median(taken[:, 0]) * 1000, np.median(taken[:, 1] - taken[:, 0]) * 1000
    print(f"one caller, in turn with the signature: p50 of the signature {own:.1f} ms, of the difference {more:.1f} ms")
    memory = service.memory()
    head("callers x sentences", *names, "sentences in a batch")
    rates = {}
    for sentences, callers in itertools.product(SENTENCES, CALLERS):
        batches, rows = service.metric("nmt_batch_rows_count"), service.metric("nmt_batch_rows_sum")
        taken, elapsed = closed_loop(service, lines, callers, sentences, arguments.seconds)
        mean = (service.metric("nmt_batch_rows_sum") - rows) / (service.metric("nmt_batch_rows_count") - batches)
        row(f"{callers} x {sentences}", taken, sentences, elapsed, f"{mean:.1f}")
        if callers == 16:
            rates[sentences] = len(taken) * sentences / elapsed
    rate = max(1.0, rates[1] / 2)
    head("open loop, sentences/s", *names)
    taken, elapsed = open_loop(service, lines, rate, arguments.seconds)
    row(f"{rate:.0f}", taken, 1, elapsed)
    done = 0
    while done < arguments.requests:
        done += len(closed_loop(service, lines, 16, 1, 5.0)[0])
    print(f"\nmemory: {memory:.0f} MiB before, {service.memory():.0f} MiB after the callers and {done} more requests")
    service.stop()
    after = measure_bare()
    signature_rates = {batch: max(before[batch], after[batch]) for batch in CALLERS}
    best = max(signature_rates.values())
    print("\nsentences/s of the service over those of the signature, at its best batch size and at this one:")
    for sentences, rate in rates.items():
        batch = min(16 * sentences, max(CALLERS))
        print(f"16 callers x {sentences}: {rate / best:.2f}, {rate / signature_rates[batch]:.2f} (batches of {batch})")


if __name__ == "__main__":
    main()
