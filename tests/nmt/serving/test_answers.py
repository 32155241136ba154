"""Responses that clients have not read yet."""

import asyncio

import pytest

pytest.importorskip("starlette")

from nmt.serving.service.limits import PIECE, Refused, ResponseBudget


def send(response, stop_after=None):
    """Sends a response; returns its messages. The connection breaks after `stop_after` of them."""
    messages = []

    async def take(message):
        if len(messages) == stop_after:
            raise OSError
        messages.append(message)

    asyncio.run(response({}, None, take))
    return messages


def test_a_response_is_sent_in_pieces():
    content = bytes(range(256)) * (PIECE // 100)
    start, *parts = send(ResponseBudget(0).response(content))
    assert dict(start["headers"])[b"content-length"] == str(len(content)).encode()
    assert b"".join(part["body"] for part in parts) == content
    assert all(len(part["body"]) <= PIECE for part in parts)
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]


@pytest.mark.parametrize("stop_after", [None, 1])
def test_responses_count_until_they_are_sent_or_the_client_has_left(stop_after):
    budget = ResponseBudget(2 * PIECE)
    large = bytes(PIECE + 1)
    first = budget.response(large)
    with pytest.raises(Refused, match="read slowly") as refused:
        budget.response(large)
    assert refused.value.status_code == 503
    for response in (first, budget.response(b"a small one is not refused")):
        try:
            send(response, stop_after)
        except OSError:
            assert stop_after
    assert budget.size == 0
    assert budget.response(bytes(3 * PIECE)).status_code == 200  # alone
