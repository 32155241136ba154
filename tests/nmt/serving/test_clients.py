"""The clients of TensorFlow Serving:

REST against the service, gRPC against a stand-in of that API on loopback.
"""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

CLIENTS = Path(__file__).parents[3] / "deploy" / "tensorflow_serving"
LINES = [f"line {i} é" for i in range(40)]


def translate(client, *arguments, lines=LINES, end="\n"):
    command = [sys.executable, CLIENTS / client, *arguments]
    text = "".join(f"{line}{end}" for line in lines)
    return subprocess.run(command, input=text.encode(), capture_output=True, timeout=300)


def test_the_rest_client(serve_toy, tmp_path):
    service = serve_toy(tmp_path)
    address = f"http://127.0.0.1:{service.port}/v1/models"
    run = translate("rest_client.py", f"{address}/toy")
    expected = [f"LINE {i} é!" for i in range(40)]
    assert (run.returncode, run.stdout.decode().splitlines()) == (0, expected), run.stderr
    run = translate("rest_client.py", f"{address}/other")
    assert (run.returncode, run.stderr.count(b"\n"), b"says 404" in run.stderr) == (2, 1, True)


class Busy(BaseHTTPRequestHandler):
    """Gives the answers of a list, one a request, then translates by upper case."""

    def do_POST(self):
        lines = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"][
            "sources"
        ]
        good = (
            200,
            {},
            json.dumps({"outputs": {"translations": [line.upper() for line in lines]}}),
        )
        status, headers, body = self.server.answers.pop(0) if self.server.answers else good
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def busy():
    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        server.answers = []
        server.address = f"http://127.0.0.1:{server.server_port}/v1/models/any"
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield server
        server.shutdown()


def test_the_rest_client_comes_back_when_the_queue_was_full(busy):
    busy.answers = [(429, {"Retry-After": "0"}, '{"error": "the queue is full"}')] * 3
    run = translate("rest_client.py", busy.address, lines=["a", "", "b\rc"], end="\r\n")
    assert (run.returncode, run.stdout) == (0, b"A\n\nB\rC\n"), run.stderr


@pytest.mark.parametrize(
    "answer, said",
    [
        ((503, {}, "Service Unavailable"), "503: Service Unavailable"),
        ((429, {}, '{"error": "no more"}'), "429: no more"),
        ((502, {}, "<html>\n<p>Bad</p></html>"), "502: <html> <p>Bad</p></html>"),
        ((500, {}, ""), "500: Internal Server Error"),
    ],
)
def test_the_rest_client_says_what_the_server_says(busy, answer, said):
    busy.answers = [answer]
    run = translate("rest_client.py", busy.address)
    assert (run.returncode, run.stderr.decode()) == (2, f"rest_client.py: the server says {said}\n")


@pytest.mark.parametrize("address", ["nowhere", "http://127.0.0.1:port/x", "http://127.0.0.1:1"])
def test_the_rest_client_says_that_an_address_is_wrong(address):
    run = translate("rest_client.py", address)
    assert (
        run.returncode,
        run.stderr.count(b"\n"),
        f"no answer from {address}" in run.stderr.decode(),
    ) == (2, 1, True)


class StandIn(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers Predict as TensorFlow Serving does, with the signature of a loaded SavedModel."""

    def __init__(self, path):
        self._signatures = tf.saved_model.load(str(path)).signatures

    def Predict(self, request, context):
        if request.model_spec.name != "toy":
            context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found")
        inputs = {
            name: tf.constant(tf.make_ndarray(value), tf.string)
            for name, value in request.inputs.items()
        }
        response = predict_pb2.PredictResponse()
        for name, value in self._signatures[request.model_spec.signature_name](**inputs).items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(value.numpy()))
        return response


@pytest.mark.slow
def test_the_grpc_client(toy):
    server = grpc.server(ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(StandIn(toy), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        run = translate("grpc_client.py", f"127.0.0.1:{port}", "toy")
        expected = [f"LINE {i} é!" for i in range(40)]
        assert (run.returncode, run.stdout.decode().splitlines()) == (0, expected), run.stderr
        run = translate("grpc_client.py", f"127.0.0.1:{port}", "other")
        assert (run.returncode, b"the server says NOT_FOUND: Servable not found" in run.stderr) == (
            2,
            True,
        )
    finally:
        server.stop(None).wait()
