"""The limits of the service, refusals, and responses that count until their clients have read them."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException as Refused
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

_ROW_BYTES = 128  # of the inputs of a row, in a batch that is full
PIECE = (
    1 << 20
)  # bytes that wait in a connection; the rest of a response follows when the client has read them


@dataclass(frozen=True)
class Limits:
    """The limits of the service.

    A row is an entry of a request's first dimension, such as a sentence.
    """

    workers: int = 1  # batches computed at the same time
    batch: int = 64  # rows in a batch
    batch_wait: float = (
        0.003  # seconds to wait for the callers of the last batch; longer after a long one
    )
    queue: int = 1024  # rows that wait or are computed
    queue_bytes: int = 16 << 20  # bytes of the inputs that wait or are computed
    rows: int = 512  # in a request
    tokens: int = 2000  # of a sentence and the longest translation that it may have
    body: int = 1 << 20  # bytes in a request
    headers_timeout: float = 10.0  # seconds to send the line and headers of a request
    deadline: float = (
        30.0  # seconds from the headers to the response, and to read each MiB of the response
    )
    unread: int = 256 << 20  # bytes of responses that clients have not read yet
    connections: int = 1000

    @property
    def batch_bytes(self) -> int:
        """Bytes of the inputs in a batch of several rows."""
        return _ROW_BYTES * self.batch


async def refusal(_: Request | None, refused: Refused) -> Response:
    """Returns the response to a request that gets no result."""
    return JSONResponse({"error": refused.detail}, refused.status_code, refused.headers)


class Outbox:
    """Counts the bytes of the responses that are being sent, and refuses more than a limit.

    Args: most: Bytes. A single response may have more, and one that fits into a connection is never
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
        return _Counted(self, content)


class _Counted(Response):
    """A response that is sent in pieces and leaves its outbox when it is sent or its client has left."""

    media_type = "application/json"

    def __init__(self, outbox: Outbox, content: bytes):
        super().__init__(content)
        self._outbox = outbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            for start in range(0, len(self.body), PIECE):
                await send(
                    {
                        "type": "http.response.body",
                        "body": self.body[start : start + PIECE],
                        "more_body": True,
                    }
                )
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._outbox.size -= len(self.body)
