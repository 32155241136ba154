"""The service: how requests share batches, and what is too much."""

import concurrent.futures
import itertools
import json
import socket
import threading
import time

import pytest

from tests.nmt.serving.toy import POST, until


def test_requests_at_a_time_share_batches_and_get_their_own_results(service):
    """While a slow request runs, others gather; all of one signature are computed together."""
    batches = service.metric("nmt_batch_rows_count")
    rows = service.metric("nmt_batch_rows_sum")
    slow = threading.Thread(
        target=service.predict, args=({"signature_name": "slow", "inputs": [10_000]},)
    )
    slow.start()
    until(lambda: service.metric("nmt_rows_running"))

    def call(i):
        texts = [f"text {i} {j}" for j in range(1 + i % 3)]
        return texts, service.predict({"inputs": texts})

    with concurrent.futures.ThreadPoolExecutor(12) as callers:
        for texts, (status, found) in callers.map(call, range(24)):
            assert (status, found["outputs"]["translations"]) == (
                200,
                [f"{text.upper()}!" for text in texts],
            )
    slow.join()
    assert service.metric("nmt_batch_rows_sum") - rows == 1 + 48
    assert service.metric("nmt_batch_rows_count") - batches < 1 + 20
    assert service.metric("nmt_rows_waiting") == service.metric("nmt_rows_running") == 0


def answer_and_slowest(service, value):
    """Returns the answer to a request, and what part of its time `/healthz` took at most."""
    start = time.monotonic()
    slowest = 0.0
    with concurrent.futures.ThreadPoolExecutor(1) as callers:
        found = callers.submit(service.request, "POST", "/v1/models/toy:predict", json.dumps(value))
        while not found.done():
            asked = time.monotonic()
            assert service.request("GET", "/healthz")[0] == 200
            slowest = max(slowest, time.monotonic() - asked)
    return found.result(), slowest / (time.monotonic() - start)


def test_others_get_answers_while_a_large_response_is_written(service):
    words = "a " * 2000  # four million attention weights
    large = {"signature_name": "attention", "inputs": {"sources": [words], "targets": [words]}}
    (status, _, body), slowest = answer_and_slowest(service, large)
    assert (status, body.count(b"1.0")) == (200, 2000)
    assert slowest < 0.5  # 1 if no other thread ran meanwhile


def test_others_get_answers_while_tokens_are_counted(service):
    (status, _, _), slowest = answer_and_slowest(service, {"inputs": ["count slowly"]})
    assert status == 200
    assert slowest < 0.5  # nearly 1 if the event loop waited for it


def test_a_signature_that_does_not_keep_rows_is_computed_alone_or_fails_alone(service):
    assert service.predict({"signature_name": "broken", "inputs": ["a", "b"]}) == (
        200,
        {"outputs": ["ab"]},
    )
    found = service.predict({"signature_name": "joined", "inputs": ["a", "b"]})
    assert found == (200, {"outputs": {"text": "ab", "count": 2}})
    status, answer = service.predict({"signature_name": "broken", "instances": ["a", "b"]})
    assert (status, "'one' has no rows" in answer["error"]) == (400, True)


def test_too_much_is_refused(service):
    status, answer = service.predict({"instances": ["a"] * 101})
    assert (status, "100 rows, this one has 101" in answer["error"]) == (413, True)


@pytest.mark.parametrize("name", ["serving_default", "n_best"])
def test_a_sentence_that_may_take_too_long_is_refused(service, name):
    good = " ".join(["a"] * 500)
    long = " ".join(["a"] * 501)
    assert service.predict({"signature_name": name, "inputs": ["", good, good]})[0] == 200
    status, answer = service.predict({"signature_name": name, "instances": ["b", long]})
    assert (status, "2000" in answer["error"], "2004" in answer["error"]) == (400, True, True)
    assert "--tokens" in answer["error"]
    assert (
        service.predict({"signature_name": "reverse", "inputs": [long]})[0] == 200
    )  # translates nothing
    assert service.predict({"inputs": []})[0] == 200


def test_a_body_that_is_much_too_large_is_not_read_to_its_end(service):
    try:
        status, _, _ = service.request(
            "POST", "/v1/models/toy:predict", itertools.repeat(b" " * 65536, 1000)
        )
        assert status == 413
    except (
        BrokenPipeError,
        ConnectionResetError,
    ):  # the service closed the connection while the body was sent
        pass
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        start = POST + b"Content-Length: 2000000\r\n"
        connection.sendall(start + b"Expect: 100-continue\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"  # before the body is sent
    assert service.predict({"instances": ["a"]})[0] == 200


def test_a_full_queue_says_try_again_and_a_client_that_leaves_frees_its_place(service):
    body = json.dumps({"signature_name": "slow", "inputs": [15_000] + [0] * 49}).encode()
    head = POST + b"Content-Length: %d\r\n\r\n" % len(body)
    left = service.metric("nmt_requests_total", "499")
    clients = []
    for _ in range(2):  # one is computed, one waits
        clients.append(socket.create_connection(("127.0.0.1", service.port)))
        clients[-1].sendall(head + body)
        time.sleep(0.2)
    until(lambda: service.metric("nmt_rows_running") + service.metric("nmt_rows_waiting") == 100)
    status, headers, answer = service.request(
        "POST", "/v1/models/toy:predict", '{"instances": ["a"]}'
    )
    assert (status, headers["retry-after"]) == (429, "1")
    assert json.loads(answer) == {"error": "the queue is full; try again later"}
    assert service.metric("nmt_rows_waiting") == 50
    clients[1].close()
    until(lambda: service.metric("nmt_rows_waiting") == 0)
    assert service.metric("nmt_requests_total", "499") == left + 1
    assert clients[0].recv(12) == b"HTTP/1.1 200"
    clients[0].close()


def test_no_result_in_time_is_504(serve_toy, tmp_path):
    service = serve_toy(tmp_path, "--workers", 1, "--timeout", 1, "--batch", 1)
    status, answer = service.predict({"signature_name": "slow", "inputs": [20_000]})
    assert (status, "no result within 1 seconds" in answer["error"]) == (504, True)
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as slow:
        slow.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")
    until(lambda: not service.metric("nmt_rows_running"))
    assert service.predict({"signature_name": "slow", "inputs": [3_000] * 200})[0] == 504
    until(lambda: not service.metric("nmt_rows_running"))
    assert service.metric("nmt_batch_rows_sum") < 100  # the others were left out
    service.process.terminate()
    service.process.join(60)
    assert service.process.exitcode == 0
