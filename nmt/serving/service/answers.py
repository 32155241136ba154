"""What the service answers: refusals, and responses that are counted until their clients have read them."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

PIECE = 1 << 20  # bytes that wait in a connection; the rest of a response follows when the client has read them


class Refused(Exception):
    """A request that gets no result.

    Args:
        status: HTTP status.
        message: One sentence on what is wrong and what to do.
        headers: HTTP headers of the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


async def refusal(_: Request | None, refused: Refused) -> Response:
    """Returns the response to a refused request."""
    return JSONResponse({"error": refused.message}, refused.status, refused.headers)


class Outbox:
    """Counts the bytes of the responses that are being sent, and refuses more than a limit.

    Args:
        most: Bytes. A single response may have more, and one that fits into a connection is never refused.
    """

    def __init__(self, most: int):
        self._most, self.size = most, 0

    def response(self, content: bytes) -> Response:
        """Returns a response with this JSON. Until it is sent, it counts.

        Raises:
            Refused: Too many responses wait for clients that read slowly.
        """
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
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for start in range(0, len(self.body), PIECE):
                await send({"type": "http.response.body", "body": self.body[start : start + PIECE], "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._outbox.size -= len(self.body)
