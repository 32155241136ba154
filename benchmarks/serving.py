"""Measures `python -m nmt serve`, and prints tables.

    python benchmarks/serving.py SAVED_MODEL --requests 20000 --json SERVING.json < sentences

Callers, who share the cores of the machine with the service, each send their next request when they
have a response. Measures sentences a second, latency, the time to start, and memory.
"""

import http.client
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import tables
from runner import ROOT, parser_of

CALLERS = (1, 4, 16, 64)
SENTENCES = (1, 16)


class Service:
    """The service in a process of its own, with one model."""

    def __init__(self, saved_model):
        self._folder = tempfile.TemporaryDirectory()
        version = Path(self._folder.name, "model", "1")
        version.parent.mkdir()
        version.symlink_to(saved_model.resolve())
        start = time.perf_counter()
        command = [sys.executable, "-m", "nmt", "serve", self._folder.name]
        command += ["--port", "0", "--timeout", "120"]
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
            text = connection.getresponse().read().decode()
        return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])

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


def closed_loop(service, lines, callers, sentences, seconds):
    """Returns the seconds of every request, and of the whole loop."""
    begin = time.perf_counter()
    taken = []

    def call(caller):
        connection = service.connect()
        texts = itertools.islice(itertools.cycle(lines), caller * 97, None)
        while time.perf_counter() < begin + seconds:
            taken.append(ask(connection, list(itertools.islice(texts, sentences))))

    with ThreadPoolExecutor(callers) as threads:
        list(threads.map(call, range(callers)))
    return taken, time.perf_counter() - begin


def measure_loop(service, lines, callers, sentences, seconds):
    """Returns the figures of some callers, with the mean number of sentences in a batch."""
    names = ("nmt_batch_rows_count", "nmt_batch_rows_sum")
    before = [service.metric(name) for name in names]
    taken, elapsed = closed_loop(service, lines, callers, sentences, seconds)
    batches, rows = (service.metric(name) - old for name, old in zip(names, before, strict=True))
    found = {f"p{each}": 1000 * np.percentile(taken, each) for each in (50, 95, 99)}
    found |= {"rate": len(taken) * sentences / elapsed, "batch": rows / batches}
    print(found, flush=True)
    return found


def measure_service(service, lines, options):
    """Returns all figures of a running service."""
    found = {size: {} for size in SENTENCES}
    memory = {"start": service.memory()}
    start = {"ready": service.seconds_to_start, "first": ask(service.connect(), lines[:1])}
    for size, callers in itertools.product(SENTENCES, CALLERS):
        found[size][callers] = measure_loop(service, lines, callers, size, options.seconds)
    memory |= {"loops": service.memory(), "requests": 0}
    while memory["requests"] < options.requests:
        memory["requests"] += len(closed_loop(service, lines, 16, 1, 5.0)[0])
    return {"start": start, "callers": found, "memory": {**memory, "end": service.memory()}}


def main():
    parser = parser_of(__doc__, seconds=6.0)
    parser.add_argument("saved_model", type=Path, metavar="SAVED_MODEL", help="an export")
    help_text = "more of them at the end, to see whether memory grows"
    parser.add_argument("--requests", type=int, default=0, help=help_text)
    options = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    if not lines:
        parser.error("there are no sentences; give a text on standard input")
    with Service(options.saved_model) as service:
        found = measure_service(service, lines, options)
    tables.publish(options, "serving", found)


if __name__ == "__main__":
    main()
