"""Ten times what each limit allows: it is refused, and others are answered meanwhile."""

import asyncio
import contextlib
import gc
import gzip
import json
import multiprocessing
import socket
import time
import tracemalloc
from pathlib import Path

import pytest

from nmt.serving.service.access import Access
from nmt.serving.service.app import Service
from nmt.serving.service.limits import Budget, Limits, Refused
from nmt.serving.service.rest import unpack
from tests.nmt.serving.sending import send, send_again_and_again
from tests.nmt.serving.toy import POST, until

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = 1 << 20


def with_length(body, more=b""):
    return POST + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_chunks(body, size=1):
    """Returns a request that is good, in chunks of this many bytes."""
    chunks = (body[i : i + size] for i in range(0, len(body), size))
    return CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"


def inputs(values):
    return with_length(b'{"inputs": [%s]}' % values)


NAMES = b",".join(b'"%d": 1' % i for i in range(32_000))
KINDS = {
    "colons of the path": (
        b"GET /v1/models/%s/x HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b":" * 7_900),
        404,
    ),
    "bytes of the head": (HEALTH + b"X: %s\r\n\r\n" % (b"a" * 81_920), 400),
    "headers": (HEALTH + b"a:\r\n" * 1_000 + b"\r\n", 400),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"a:\r\n" * 1_000 + b"\r\n", 400),
    "chunks": (in_chunks(b'{"inputs": ["%s"]}' % (b"a" * 20_480)), 400),
    "small chunks": (in_chunks(b'{"inputs": ["%s"]}' % (b"a" * 20_480), 11), 200),
    "requests at once": ((HEALTH + b"a:\r\n" * 90 + b"\r\n") * 50, 200),
    "bytes of the body": (with_length(b" " * 10 * MIB), 413),
    "unpacked bytes": (
        with_length(gzip.compress(bytes(10 * MIB)), b"Content-Encoding: gzip\r\n"),
        413,
    ),
    "values": (inputs(b"[%s1]" % (b"[]," * 327_680)), 413),
    "nesting": (inputs(b"[" * 60_000), 400),
    "keys": (with_length(b'{%s, "31999": 2}' % NAMES), 400),
    "rows": (inputs(b'"a",' * 5_119 + b'"a"'), 413),
    "tokens": (inputs(b'"%s"' % (b"a " * 20_000)), 400),
    "characters": (inputs(b'"%s"' % (b"a" * 990_000)), 200),
}


@pytest.fixture(scope="module")
def service(serve_toy, tmp_path_factory):
    gc.freeze()  # else the times have collections of all of TensorFlow in this process
    yield serve_toy(tmp_path_factory.mktemp("limits"), "--workers", 1, "--timeout", 300)
    gc.unfreeze()


@pytest.mark.parametrize("kind", KINDS)
def test_ten_times_a_limit_is_refused(service, kind):
    data, status = KINDS[kind]
    # The service closes the connection while more comes.
    may_end = kind in ("bytes of the head", "headers", "trailers", "chunks", "bytes of the body")
    assert send(service.port, data, whole=True) in ((status, 0) if may_end else (status,))
    assert service.predict({"inputs": ["a"]})[0] == 200


def own_time(service):
    """Returns the time of a clock that stands still while the event loop waits for a core."""
    waited = Path(f"/proc/{service.process.pid}/schedstat").read_text().split()[1]
    return time.monotonic() - int(waited) / 1e9


def slowest(ask, clock=time.monotonic):
    """Returns the seconds of the longest of the requests that are sent within 3 seconds."""
    longest = 0.0
    end = time.monotonic() + 3
    while time.monotonic() < end:
        begun = clock()
        assert ask()[0] == 200
        longest = max(longest, clock() - begun)
    return longest


@pytest.mark.slow
@pytest.mark.parametrize(("callers", "most"), [(8, 0.2), (64, 1.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_others_are_answered_meanwhile(service, kind, callers, most):
    """Within 1 s, which is how long Kubernetes waits by default; beside few callers, earlier."""
    arguments = (service.port, *KINDS[kind], callers, 10)
    process = multiprocessing.get_context("forkserver").Process(
        target=send_again_and_again, args=arguments
    )
    process.start()
    time.sleep(0.5)
    health = slowest(lambda: service.get("/healthz"))
    own = slowest(lambda: service.get("/healthz"), lambda: own_time(service))
    small = slowest(lambda: service.predict({"inputs": ["a"]}))
    process.join()
    print(
        f"{kind}: /healthz took at most {health:.3f} s ({own:.3f} s beside waiting for a core), "
        f"a small request {small:.3f} s"
    )
    assert process.exitcode == 0
    assert own < most and max(health, small) < 1


@pytest.mark.parametrize(("kind", "answers"), [("small chunks", 1), ("requests at once", 50)])
def test_many_chunks_and_headers_are_parsed_slowly(service, kind, answers):
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(KINDS[kind][0])
        found = b""
        while found.count(b"HTTP/1.1 200") < answers:
            found += connection.recv(1 << 16)
    assert time.monotonic() - begun > 0.3


def test_bodies_that_wait_are_bounded_together_and_given_back(service):
    address = ("127.0.0.1", service.port)
    whole = with_length(b" " * MIB, b"Connection: close\r\n")
    with contextlib.ExitStack() as stack:

        def is_refused():
            """Holds one body more. A caller is refused by an answer, and not by a reset."""
            waiting = stack.enter_context(socket.create_connection(address, timeout=30))
            waiting.sendall(whole[:-1])
            return send(service.port, whole, whole=True) == 429

        until(is_refused)
        assert is_refused()
        assert service.get("/healthz")[0] == 200
    until(lambda: send(service.port, whole) == 400)
    for _ in range(17):
        assert send(service.port, whole) == 400


@pytest.mark.parametrize("room", [MIB * 15 // 16, 16 * MIB], ids=["no room", "too large"])
def test_a_refused_body_is_not_kept_while_its_client_is_silent(room):
    class Silent:
        async def stream(self):
            for _ in range(17):
                yield bytes(MIB // 16)
            await asyncio.Event().wait()

    async def read():
        with budget.share() as take:
            reading = asyncio.create_task(service._read(Silent(), take))
            await asyncio.sleep(0.1)
            found = tracemalloc.get_traced_memory()[0], budget.used
            reading.cancel()
            return found

    service = Service(None, Limits(), Access())
    budget = Budget(room)
    tracemalloc.start()
    kept, used = asyncio.run(read())
    tracemalloc.stop()
    assert (used, budget.used) == (0, 0)
    assert kept < MIB // 2


def test_rows_are_counted_before_their_values_are_read(service):
    assert send(service.port, inputs(b"1," * 512 + b"1")) == 413
    assert send(service.port, inputs(b"1," * 511 + b"1")) == 400


def test_no_more_is_unpacked_than_the_limit():
    packed = gzip.compress(bytes(64 * MIB))
    tracemalloc.start()
    with pytest.raises(Refused) as refused:
        unpack(packed, MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.value.status_code == 413
    assert peak < 8 * MIB


def test_the_status_of_each_request_is_counted(service):
    def counts():
        return {status: service.metric("nmt_requests_total", status) for status in wanted}

    good = json.dumps({"inputs": ["a"]}).encode()
    wanted = ["200", "400", "413", "415"]
    before = counts()
    for data, status in (
        *[(with_length(good), 200)] * 3,
        *[(with_length(b"{}"), 400)] * 2,
        (KINDS["rows"][0], 413),
        (with_length(b" " * MIB, b"Content-Encoding: br\r\n"), 415),
    ):
        assert send(service.port, data, whole=True) == status
    after = counts()
    assert [after[status] - before[status] for status in wanted] == [3, 2, 1, 1]


def test_gzip_is_unpacked_and_a_byte_order_mark_skipped(service):
    packed = gzip.compress(b'\xef\xbb\xbf{"inputs": ["a"]}')
    for body, status in ((packed, 200), (packed[:-1], 400), (packed * 2, 400), (b"{}", 400)):
        headers = {"Content-Encoding": "gzip"}
        found, _, answer = service.request("POST", "/v1/models/toy:predict", body, headers)
        assert found == status
        assert b'"A!"' in answer if status == 200 else b"gzip" in answer


def test_refused_requests_write_few_lines(service):
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\n"
    before = len(service.log.read_text().splitlines())
    begun = time.monotonic()
    for _ in range(50):
        assert send(service.port, upgrade + b"Upgrade: h2c\r\n\r\n") == 200
        assert send(service.port, b"GET\r\n\r\n") == 400
    lines = service.log.read_text().splitlines()[before:]
    assert 1 <= len(lines) <= 2 * (time.monotonic() - begun + 1)
    assert not any("pip install" in line for line in lines)
