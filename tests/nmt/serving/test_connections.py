"""Many open connections: health is always answered, and those that do nothing give way."""

import asyncio
import contextlib
import functools
import gc
import http.client
import json
import resource
import socket

import h11
import pytest
import uvicorn

from nmt.serving.service.connection import Connection, ConnectionLimit
from nmt.serving.service.limits import Answer, Budget, Limits
from tests.nmt.serving.sending import send
from tests.nmt.serving.toy import POST

BODY = b'{"inputs": ["a"]}'
REQUEST = POST + b"Content-Length: %d\r\n\r\n" % len(BODY)
MOST = 1000


@pytest.fixture
def service(serve_toy, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < MOST + 300:
        pytest.skip(f"needs {MOST + 300} open files, but only {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MOST + 300), hard))
    yield serve_toy(tmp_path, "--timeout", 300)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def connect(service):
    with contextlib.ExitStack() as stack:

        def begin(sent=b""):
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", service.port), timeout=30)
            )
            connection.sendall(sent)
            return connection

        yield begin


def ended(connection):
    """Returns whether the service has ended a connection."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def is_well(service):
    return [service.request("GET", path)[0] for path in ("/healthz", "/readyz")] == [200, 200]


@pytest.mark.parametrize("sent", [b"", b"GET /heal"], ids=["silent", "half a head"])
def test_idle_connections_give_way_the_oldest_first(service, connect, sent):
    kept = connect(REQUEST + BODY)
    response = http.client.HTTPResponse(kept)
    response.begin()
    assert (response.status, len(response.read()) > 0) == (200, True)
    silent = [connect(sent) for _ in range(MOST + 5)]
    assert is_well(service)
    assert service.predict({"inputs": ["a"]})[0] == 200
    gone = [ended(connection) for connection in (kept, *silent)]
    assert gone == sorted(gone, reverse=True)
    assert 6 <= sum(gone) < 20  # and one for each request of this test


def test_requests_in_progress_keep_their_places_and_others_come_back_later(service, connect):
    waiting = [connect(REQUEST) for _ in range(MOST)]  # their bodies do not come
    for _ in range(250):  # those whose heads were not read yet have given way
        waiting.append(connect(REQUEST))
        status, headers, body = service.request("POST", "/v1/models/toy:predict", BODY)
        if status == 503:
            break
    assert (status, headers["Retry-After"], headers["Connection"]) == (503, "1", "close")
    assert "try again later" in json.loads(body)["error"]
    assert is_well(service)
    waiting[-1].sendall(BODY)
    assert waiting[-1].recv(12) == b"HTTP/1.1 200"
    for connection in waiting[:20]:
        connection.close()
    assert service.predict({"inputs": ["a"]})[0] == 200
    assert "Traceback" not in service.log.read_text()


def connecting():
    """Returns a function that makes connections, and uvicorn's state of them."""
    config = uvicorn.Config(Answer(b"", Budget(0)), lifespan="off", log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    given = {"config": config, "server_state": state, "app_state": {}}
    return functools.partial(Connection, ConnectionLimit(9), Limits(), **given), state


def test_a_connection_that_a_client_resets_is_forgotten():
    """The client closes with unread data."""
    connect, state = connecting()

    async def work():
        async with await asyncio.get_running_loop().create_server(
            connect, "127.0.0.1", 0
        ) as server:
            port = server.sockets[0].getsockname()[1]
            assert await asyncio.to_thread(send, port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") == 200
            while state.connections:
                await asyncio.sleep(0.01)
            gc.collect()
            assert not any(type(each) is Connection for each in gc.get_objects())

    asyncio.run(work())


@pytest.mark.parametrize(
    ("begin", "size"),
    [
        (b"", 512),
        (b"Content-Length: 90000\r\n\r\na", 8192),
        (b"Transfer-Encoding: chunked\r\n\r\n", 512),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\na", 512),
        (b"Transfer-Encoding: chunked\r\n\r\n1000\r\na", 0xFFF),
        (b"Transfer-Encoding: chunked\r\n\r\n10000\r\na", 8192),
    ],
)
def test_large_chunks_are_read_as_bodies_of_known_length(begin, size):
    """And what may hold many chunks or headers in small pieces."""

    async def next_read():
        connection = connecting()[0]()
        connection.conn.receive_data(POST + begin)
        while connection.conn.next_event() is not h11.NEED_DATA:
            pass
        return len(connection.get_buffer(0))

    assert asyncio.run(next_read()) == size


@pytest.mark.parametrize("count", [100, 102])
def test_a_head_may_have_100_headers(count):
    """Whatever comes in the last read."""

    async def head():
        parser = connecting()[0]().conn
        parser.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * (count - 1))
        if count > 100:
            with pytest.raises(h11.RemoteProtocolError, match="100 headers"):
                parser.next_event()
            return
        assert parser.next_event() is h11.NEED_DATA
        parser.receive_data(b"\r\n")
        assert len(parser.next_event().headers) == count

    asyncio.run(head())
