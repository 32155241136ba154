"""Load for the service of `python -m nmt serve`: the service in a process of its own, and callers in threads."""

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
from pathlib import Path

import numpy as np
import tensorflow as tf


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
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        printed = []
        for line in self._process.stderr:
            printed.append(line)
            if found := re.search(r"http://\S+:(\d+)", line):
                self._port = int(found[1])
                break
        else:
            self._folder.cleanup()
            sys.exit("".join(["the service ended before it was ready:\n", *printed]))
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

    def close(self):
        self._process.terminate()
        assert self._process.wait(60) == 0
        self._folder.cleanup()


def ask(connection, texts):
    """Sends a request and returns its seconds."""
    start = time.perf_counter()
    connection.request(
        "POST", "/v1/models/model:predict", json.dumps({"inputs": texts}), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    return time.perf_counter() - start


def in_threads(count, function):
    """Runs `function(i)` in as many threads and returns their results in one list."""
    with ThreadPoolExecutor(count) as threads:
        return list(itertools.chain.from_iterable(threads.map(function, range(count))))


def closed_loop(service, lines, callers, sentences, seconds):
    """Returns the seconds of every request of callers who send one after the other, and of the whole loop."""
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


def open_loop(service, lines, rate, sentences, seconds):
    """Sends `rate` requests a second at random times; returns the seconds of every request, and of the whole loop.

    A request's seconds are those from its due time to its response.
    """
    first = time.perf_counter() + 0.1
    due = first + np.sort(np.random.default_rng(0).uniform(0, seconds, round(rate * seconds)))
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
            ask(connection, [lines[(number * sentences + j) % len(lines)] for j in range(sentences)])
            taken.append(time.perf_counter() - due[number])

    return in_threads(64, call), time.perf_counter() - first


def alternately(signature, service, lines, rounds):
    """Returns the seconds of the signature and of the service for single sentences, `[rounds, 2]`."""
    connection, taken = service.connect(), []
    for number in range(rounds):
        text = lines[number % len(lines)]
        begin = time.perf_counter()
        signature(sources=tf.constant([text]))["translations"].numpy()
        taken.append((time.perf_counter() - begin, ask(connection, [text])))
    return np.array(taken)


def bare(signature, lines, batch, seconds):
    """Returns the seconds of every call of the signature in this process."""
    taken, end = [], time.perf_counter() + seconds
    for start in itertools.count(0, batch):
        if time.perf_counter() > end and len(taken) > 2:
            return taken
        texts = tf.constant([lines[(start + j) % len(lines)] for j in range(batch)])
        begin = time.perf_counter()
        signature(sources=texts)["translations"].numpy()
        taken.append(time.perf_counter() - begin)
