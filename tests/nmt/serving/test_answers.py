"""Responses that clients have not read yet."""

import asyncio
import functools
import gc

import pytest
import uvicorn

from nmt.serving.service.connection import Connection, ConnectionLimit
from nmt.serving.service.limits import PIECE, Answer, Budget, Limits, Refused
from tests.nmt.serving import sending


def send(answer, stop_after=None):
    """Sends an answer; returns its messages. The connection breaks after `stop_after` of them."""
    messages = []

    async def take(message):
        if len(messages) == stop_after:
            raise OSError
        messages.append(message)

    asyncio.run(answer({}, None, take))
    return messages


def test_an_answer_is_sent_in_pieces():
    content = bytes(range(256)) * (PIECE // 100)
    start, *parts = send(Answer(content, Budget(0)))
    assert dict(start["headers"])[b"content-length"] == str(len(content)).encode()
    assert b"".join(part["body"] for part in parts) == content
    assert all(len(part["body"]) <= PIECE for part in parts)
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]


def test_a_large_answer_is_refused_while_others_are_sent():
    unread = Budget(2 * PIECE)
    large = bytes(PIECE + 1)

    async def take(message):
        with pytest.raises(Refused) as refused:
            Answer(large, unread)
        assert refused.value.status_code == 503
        Answer(b"a small one is not refused", unread)

    asyncio.run(Answer(large, unread)({}, None, take))
    assert Answer(bytes(3 * PIECE), unread).status_code == 200  # alone


@pytest.mark.parametrize("stop_after", [None, 1])
def test_an_answer_counts_until_it_is_sent_or_the_client_has_left(stop_after):
    unread = Budget(PIECE)
    try:
        send(Answer(bytes(PIECE), unread), stop_after)
    except OSError:
        assert stop_after
    assert unread.used == 0


def test_a_connection_that_a_client_resets_is_forgotten():
    """The client closes with unread data."""
    config = uvicorn.Config(Answer(b"", Budget(0)), lifespan="off", log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    connect = functools.partial(
        Connection,
        ConnectionLimit(9),
        Limits(),
        config=config,
        server_state=state,
        app_state={},
    )

    async def work():
        async with await asyncio.get_running_loop().create_server(
            connect, "127.0.0.1", 0
        ) as server:
            port = server.sockets[0].getsockname()[1]
            assert (
                await asyncio.to_thread(sending.send, port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                == 200
            )
            while state.connections:
                await asyncio.sleep(0.01)
            gc.collect()
            assert not any(type(each) is Connection for each in gc.get_objects())

    asyncio.run(work())
