"""The limits of the service, refusals, and budgets of bytes that all requests share."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException as Refused
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

_ROW_BYTES = 128  # of the inputs of a row, in a batch that is full
PIECE = 1 << 20  # bytes of a response that may wait in a connection


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

    def most_rows(self, joinable: bool) -> int:
        """Returns how many rows a request may have.

        Rows that are computed together are one batch, so that others do not wait for many.
        """
        return min(self.rows if joinable else self.batch, self.queue)


def queue_is_full() -> Refused:
    """Returns the refusal of a request for which there is no place."""
    return Refused(429, "the queue is full; try again later", {"Retry-After": "1"})


async def refusal(_: Request | None, refused: Refused) -> Response:
    """Returns the response to a request that gets no result."""
    return JSONResponse({"error": refused.detail}, refused.status_code, refused.headers)


class ResponseBudget:
    """Limits the bytes of the responses that are being sent.

    Args:
        most: Bytes. A single response may have more, and one that fits into a connection is never
            refused.
    """

    def __init__(self, most: int):
        self._most = most
        self.size = 0

    def response(self, content: bytes) -> Response:
        """Returns a response with this JSON. Until it is sent, it counts."""
        if self.size and self.size + len(content) > self._most and len(content) > PIECE:
            text = "too many responses wait for clients that read slowly; try again later"
            raise Refused(503, text, {"Retry-After": "1"})
        self.size += len(content)
        return _CountedResponse(self, content)


class _CountedResponse(Response):
    """Sends a response in pieces, and then gives its bytes back."""

    media_type = "application/json"

    def __init__(self, budget: ResponseBudget, content: bytes):
        super().__init__(content)
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        try:
            await send({"type": "http.response.start", **start})
            for begin in range(0, len(self.body), PIECE):
                part = self.body[begin : begin + PIECE]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._budget.size -= len(self.body)
