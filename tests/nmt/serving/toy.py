"""Tiny SavedModels and a client of a service."""

import base64
import contextlib
import http.client
import json
import re
import time

import tensorflow as tf

TEXTS = [tf.TensorSpec([None], tf.string, name="sources")]
POST = (
    b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
)
PAIRS = [*TEXTS, tf.TensorSpec([None], tf.string, name="targets")]


def products(count):
    """Computes this many matrix products, one after the other; returns a number below 1."""
    x = tf.ones([120, 120]) / 120.0
    _, x = tf.while_loop(
        lambda i, _: i < count,
        lambda i, x: (i + 1, tf.tanh(x @ x)),
        (0, x),
        parallel_iterations=1,
    )
    return x[0, 0]


class Tiny(tf.Module):
    """Two functions that are quick to export and to load."""

    def __init__(self, mark):
        super().__init__()
        self.mark = tf.constant(mark)

    @tf.function(input_signature=TEXTS)
    def serve(self, sources):
        lengths = tf.cast(tf.strings.length(sources), tf.float32)
        return {"translations": tf.strings.upper(sources) + self.mark, "scores": lengths}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int32, name="numbers")])
    def add(self, numbers):
        return {"sums": tf.reduce_sum(numbers, 1), "flags": numbers[:, 0] > 0}


class Toy(Tiny):
    """More functions of strings, with the signatures of a translator."""

    @tf.function(input_signature=TEXTS)
    def n_best(self, sources):
        best = tf.strings.upper(sources) + self.mark
        worse = tf.strings.lower(sources) + "?"
        shape = [tf.size(sources), 2]
        endless = tf.strings.regex_full_match(sources, ".*endless.*")
        return {
            "translations": tf.ensure_shape(tf.stack([best, worse], 1), [None, 2]),
            "scores": tf.ensure_shape(tf.broadcast_to([[0.25, 1.5]], shape), [None, 2]),
            "counts": tf.where(tf.strings.regex_full_match(sources, ".*nothing.*"), 0, 2),
            "source_cut": tf.strings.length(sources) > 1000,
            "translation_cut": tf.ensure_shape(tf.stack([endless, endless], 1), [None, 2]),
        }

    @tf.function(input_signature=TEXTS)
    def tokens(self, sources):
        """Takes about a second for the text `count slowly`."""
        slowly = tf.reduce_any(sources == "count slowly")
        words = tf.strings.split(sources).row_lengths()
        words += tf.cast(0.0 * products(tf.where(slowly, 10_000, 0)), tf.int64)
        return {"source_tokens": words, "translation_tokens": 3 * words}

    @tf.function(input_signature=PAIRS)
    def attention(self, sources, targets):
        source, target = (tf.strings.split(x).to_tensor() for x in (sources, targets))
        weights = tf.eye(tf.shape(target)[1], tf.shape(source)[1], batch_shape=[tf.size(sources)])
        return {"attention": weights, "source_tokens": source, "target_tokens": target}

    @tf.function(input_signature=PAIRS)
    def pair(self, sources, targets):
        return {"both": sources + targets}

    @tf.function(input_signature=TEXTS)
    def reverse(self, sources):
        """Refuses a text with an x; the reverse of one that is not ASCII is not UTF-8."""
        tf.debugging.Assert(
            tf.logical_not(tf.reduce_any(tf.strings.regex_full_match(sources, ".*x.*"))), ["no x"]
        )
        return {
            "reversed": tf.strings.reduce_join(
                tf.reverse(tf.strings.bytes_split(sources).to_tensor(), [1]), 1
            )
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="steps")])
    def slow(self, steps):
        """Takes about a tenth of a millisecond a step."""
        return {"steps": steps + tf.cast(products(tf.reduce_max(steps)), tf.int32)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="numbers")])
    def log(self, numbers):
        return {"logs": tf.math.log(numbers)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="numbers")])
    def roots(self, numbers):
        """Complex numbers, which JSON does not have."""
        return {"roots": tf.sqrt(tf.cast(numbers, tf.complex64))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.bfloat16, name="numbers")])
    def halves(self, numbers):
        return {"halves": numbers / 2}

    @tf.function(input_signature=TEXTS)
    def joined(self, sources):
        return {"text": tf.strings.reduce_join(sources), "count": tf.size(sources)}

    @tf.function(input_signature=TEXTS)
    def broken(self, sources):
        return {"one": tf.strings.reduce_join(sources, keepdims=True)}


def write_toy(path, mark="!", kind=Toy):
    """Exports a toy; returns its path."""
    toy = kind(mark)
    names = [name for name in dir(kind) if hasattr(getattr(kind, name), "get_concrete_function")]
    signatures = {name: getattr(toy, name) for name in names}
    signatures["serving_default"] = signatures.pop("serve")
    tf.saved_model.save(toy, str(path), signatures=signatures)
    return path


class Client:
    """Talks to a service; `process` is the one that serves."""

    def __init__(self, port, process=None):
        self.port = port
        self.process = process

    def request(self, method, path, body=None, headers=None, timeout=300):
        """Returns status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            json_type = {"Content-Type": "application/json"} if method == "POST" else {}
            connection.request(method, path, body, json_type | (headers or {}))
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def get(self, path):
        status, _, body = self.request("GET", path)
        return status, json.loads(body)

    def post(self, path, value):
        status, _, body = self.request(
            "POST", path, value if isinstance(value, bytes) else json.dumps(value)
        )
        return status, json.loads(body)

    def predict(self, value, model="toy"):
        return self.post(f"/v1/models/{model}:predict", value)

    def metric(self, name, label=""):
        """Returns the sum of a metric over its labels, or over those with this value."""
        _, _, body = self.request("GET", "/metrics")
        found = re.findall(rf"^{name}(\{{.*\}})? (\S+)$", body.decode(), re.MULTILINE)
        return sum(float(value) for labels, value in found if label in labels)


def until(condition, seconds=60):
    """Waits until `condition()` holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"a condition does not hold within {seconds} seconds"
        time.sleep(0.02)


def b64(data):
    return {"b64": base64.b64encode(data).decode()}
