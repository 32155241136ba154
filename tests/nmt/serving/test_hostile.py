"""Hostile requests of many kinds at a time: nothing crashes, and no good request is lost or gets
another's text."""

import concurrent.futures
import contextlib
import json
import random
import socket
import time

import pytest

from tests.nmt.serving.toy import until

PREDICT = b"/v1/models/toy:predict"
CLOSE = b"Connection: close\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def head(method=b"POST", path=PREDICT, length=None, more=b""):
    size = b"" if length is None else b"Content-Length: %d\r\n" % length
    line = b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (
        method,
        path,
    )
    return b"%s%s%s\r\n" % (line, size, more)


def exchange(port, parts, pause=0.0, read=True, leave=True):
    """Sends bytes in parts, then leaves by closing its side.

    Returns what comes back until the other side closes.
    """
    found = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            connection.shutdown(socket.SHUT_WR) if read and leave else None
            while read and (data := connection.recv(65536)):
                found += data
    except TimeoutError:
        raise
    except OSError:
        pass  # the service may close a connection on which it refuses a request
    return found


def answered(port, parts, pause=0.0):
    """Sends a request after which the service closes the connection.

    Returns the answer, which must come; 408 and 429 only if the service has too much to do.
    """
    found = exchange(port, parts, pause, leave=False)
    statuses = (200, 400, 404, 405, 408, 413, 429)
    assert found[:12] in [b"HTTP/1.1 %d" % status for status in statuses], (found[:100], parts[0])
    return found


def garbage(draw, port):
    return exchange(port, [draw.randbytes(draw.randrange(1, 3000))])


def strange_body(draw, port):
    body = draw.choice(
        [
            draw.randbytes(draw.randrange(2000)),
            b"[" * draw.randrange(1, 200_000),
            json.dumps(
                {"inputs": [draw.choice([None, 1, -1.5, {}, [], [[]], True, "a" * 5000])] * 5}
            ).encode(),
            json.dumps(
                {draw.choice(["inputs", "instances", "x"]): {"sources": draw.choice(["a", 1, {}])}}
            ).encode(),
            json.dumps(
                {
                    "inputs": ["a"],
                    "signature_name": draw.choice(["", "x" * 9999, None, "../..", "add"]),
                }
            ).encode(),
            json.dumps({"inputs": ["a"]}).encode(draw.choice(["utf-16", "utf-32"])),
            b'{"inputs": ["%s"]}' % (b"\\ud83d" * draw.randrange(1, 100)),
            b'{"inputs": [%s]}' % (b"9" * draw.randrange(1, 6000)),
        ]
    )
    return answered(port, [head(length=len(body), more=CLOSE), body])


def strange_path(draw, port):
    parts = [
        "..",
        "%2e%2e",
        "%00",
        "etc",
        "passwd",
        "v1",
        "models",
        "toy",
        "\\",
        ":predict",
        "a" * 3000,
        "versions",
        "%ff",
    ]
    path = "/" + "/".join(draw.choices(parts, k=draw.randrange(1, 6)))
    return answered(
        port, [head(draw.choice([b"GET", b"POST", b"PUT", b"X"]), path.encode(), 0, CLOSE)]
    )


def too_large(draw, port):
    if draw.random() < 0.5:
        length = draw.choice([2**21, 2**62, 10**30])
        return answered(
            port, [head(length=length, more=CLOSE), b" " * (length if length == 2**21 else 0)]
        )
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    return answered(port, [head(more=CHUNKED + CLOSE), *[chunk] * 20, b"0\r\n\r\n"])


def large_headers(draw, port):
    return exchange(
        port,
        [b"GET / HTTP/1.1\r\n", *[b"X: %s\r\n" % (b"a" * 9000)] * draw.randrange(1, 20), b"\r\n"],
    )


def cut(draw, port):
    whole = head(length=20) + b'{"inputs": ["abcd"]}'
    return exchange(port, [whole[: draw.randrange(len(whole))]], read=False)


def slow(draw, port):
    whole = head(length=20, more=CLOSE) + b'{"inputs": ["abcd"]}'
    found = answered(
        port, [whole[i : i + 12] for i in range(0, len(whole), 12)], draw.random() / 20
    )
    assert b"ABCD!" in found
    return found


def two_lengths(draw, port):
    return exchange(
        port, [head(length=5, more=b"Content-Length: 50\r\n" + CHUNKED), b"0\r\n\r\nGET /"]
    )


def bad_chunk(draw, port):
    method, path = draw.choice(
        [(b"GET", b"/healthz"), (b"POST", b"/v1/models/none:predict"), (b"POST", PREDICT)]
    )
    return answered(port, [head(method, path, more=CHUNKED), b"ZZ\r\n"], draw.random() / 50)


def ask_for_much(port, words, more=b""):
    """Returns a connection on which a response of four bytes for each pair of words comes."""
    text = "a " * words
    body = json.dumps(
        {"signature_name": "attention", "inputs": {"sources": [text], "targets": [text]}}
    ).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=300)
    connection.sendall(head(length=len(body), more=more) + body)
    return connection


def never_reads(draw, port):
    with ask_for_much(port, draw.randrange(1, 600)):
        time.sleep(draw.random() / 2)
    return b""


def reads_slowly(draw, port):
    with ask_for_much(port, draw.randrange(1, 600)) as connection:
        for _ in range(draw.randrange(5)):
            connection.recv(draw.randrange(1, 5000))
            time.sleep(draw.random() / 10)
    return b""


KINDS = [
    *(
        garbage,
        strange_body,
        strange_path,
        too_large,
        large_headers,
        cut,
        slow,
        two_lengths,
        bad_chunk,
        never_reads,
    ),
    reads_slowly,
]


@pytest.mark.parametrize(
    "workers, count", [(2, 200), pytest.param(1, 10_000, marks=pytest.mark.slow)]
)
def test_hostile_requests(serve_toy, tmp_path, workers, count):
    service = serve_toy(tmp_path, "--workers", workers)
    secret = "a secret text of a good caller"

    def call(i):
        draw = random.Random(i)
        if i % 2:
            texts = [f"{secret} {i} {j}" for j in range(draw.randrange(1, 5))]
            return texts, service.predict({"inputs": texts})
        return None, draw.choice(KINDS)(draw, service.port)

    with concurrent.futures.ThreadPoolExecutor(16) as callers:
        for texts, found in callers.map(call, range(count)):
            if texts is None:
                assert secret.upper().encode() not in found
                assert not found or found.startswith(b"HTTP/1.1 ")
                assert b"HTTP/1.1 500" not in found
                assert b"root:" not in found
            else:
                assert found[0] == 200
                assert found[1]["outputs"]["translations"] == [f"{text.upper()}!" for text in texts]
    assert service.metric("nmt_rows_waiting") == service.metric("nmt_rows_running") == 0
    for status in (408, 429):  # so few callers are never too many
        assert not service.metric("nmt_requests_total", f'status="{status}"')
    assert "Traceback" not in service.log.read_text()
    assert service.process.is_alive()


@pytest.mark.slow
def test_a_connection_without_a_request_is_closed(serve_toy, tmp_path):
    """Headers that come slowly do not hold a connection longer than one that comes never."""
    service = serve_toy(tmp_path)
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                connection.sendall(b"X: a\r\n")
                time.sleep(0.3)
    assert 5 < time.monotonic() - start < 25
    assert service.get("/healthz")[0] == 200


@pytest.mark.slow
def test_a_client_that_reads_nothing_is_cut_off_and_one_that_reads_slowly_is_not(
    serve_toy, tmp_path
):
    service = serve_toy(tmp_path, "--timeout", 5)
    words = 2000

    def read(connection, pause):
        found = []
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(1_000_000, socket.MSG_WAITALL):
                found.append(len(data))
                time.sleep(pause)
        return sum(found)

    with (
        ask_for_much(service.port, words) as silent,
        ask_for_much(service.port, words, CLOSE) as slow,
    ):
        assert read(slow, 0.5) > 4 * words**2
        until(lambda: "a client does not read its response" in service.log.read_text(), 120)
        assert read(silent, 0) < 4 * words**2
    assert service.log.read_text().count("a client does not read") == 1
    assert service.get("/healthz")[0] == 200
