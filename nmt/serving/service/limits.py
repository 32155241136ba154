"""Defines the limits of the service, refusals, and budgets that all requests share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.exceptions import HTTPException as Refused
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

_ROW_BYTES = 128  # of the inputs of a row, in a batch that is full
PIECE = 1 << 20  # bytes of a response that may wait in a connection
CLOSE = {"Connection": "close"}  # header of an answer after which the connection ends


@dataclass(frozen=True)
class Limits:
    """The limits of the service.

    A row is an entry of a request's first dimension, such as a sentence.
    """

    workers: int = 1  # batches computed at the same time
    batch: int = 64  # rows in a batch
    batch_wait: float = 0.003  # least seconds to wait for the callers of the last batch
    queue: int = 1024  # rows that wait or are computed
    rows: int = 512  # in a request
    tokens: int = 2000  # of a sentence and the longest translation that it may have
    head: int = 8 << 10  # bytes in the line and headers of a request
    headers: int = 100  # or trailers, beside those of one read
    chunks: int = 2048  # in the body of a request
    body: int = 1 << 20  # bytes in the body of a request
    values: int = 1 << 16  # commas, colons and opening brackets in a request
    bodies: int = 16 << 20  # bytes of all bodies that arrive, wait or are computed
    head_timeout: float = 10.0  # seconds to send the line and headers of a request
    deadline: float = 30.0  # seconds to compute a request, and to read each MiB of a response
    unread: int = 256 << 20  # bytes of responses that clients have not read yet
    connections: int = 1000

    @property
    def batch_bytes(self) -> int:
        """Bytes of the inputs in a batch of several rows."""
        return _ROW_BYTES * self.batch


async def refused_response(_: Request | None, refused: Refused) -> Response:
    """Returns the response to a request that gets no result."""
    return JSONResponse({"error": refused.detail}, refused.status_code, refused.headers)


def queue_is_full() -> Refused:
    """Returns the refusal of a request for which there is no room now."""
    return Refused(429, "the queue is full; try again later", {"Retry-After": "1"})


@dataclass
class Budget:
    """Limits rows or bytes of all requests together."""

    most: int
    used: int = 0

    @contextmanager
    def share(self, free: int = 0) -> Iterator[Callable[[int], None]]:
        """Yields a function that takes more of the budget, after the first `free` of it.

        The context gives all of it back, and so does the function when it refuses.
        """
        taken = 0

        def take(size: int) -> None:
            nonlocal free, taken
            counted = max(0, size - free)
            free = max(0, free - size)
            if self.used + counted > self.most:
                self.used -= taken
                taken = 0
                raise queue_is_full()
            self.used += counted
            taken += counted

        try:
            yield take
        finally:
            self.used -= taken


class Answer(Response):
    """Sends JSON in pieces, and counts its bytes until they are sent.

    Args:
        unread: The bytes of all answers that are being sent. A single one may exceed it, and one
            that fits into its connection is never refused.
    """

    media_type = "application/json"

    def __init__(self, content: bytes, unread: Budget):
        super().__init__(content)
        self._unread = unread
        if len(content) > PIECE and unread.used and unread.used + len(content) > unread.most:
            raise Refused(
                503,
                "too many responses wait for clients that read slowly; try again later",
                {"Retry-After": "1"},
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        self._unread.used += len(self.body)
        try:
            await send({"type": "http.response.start", **start})
            for begin in range(0, len(self.body), PIECE):
                part = self.body[begin : begin + PIECE]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._unread.used -= len(self.body)
