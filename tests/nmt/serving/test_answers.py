"""Responses that clients have not read yet."""

import asyncio

import pytest

from nmt.serving.service.limits import PIECE, Answer, Budget, Refused


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
