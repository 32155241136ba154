"""The limits of the service, and what it says to a request that it refuses."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of the service. A row is an entry of a request's first dimension, such as a sentence."""

    workers: int = 1  # batches computed at the same time
    batch: int = 64  # rows in a batch that joins requests
    batch_wait: float = 0.003  # seconds to wait for the callers of the last batch; longer after a long one
    queue: int = 1024  # rows that wait or are computed
    rows: int = 512  # in a request
    body: int = 1 << 20  # bytes in a request
    headers_timeout: float = 10.0  # seconds to send the line and headers of a request
    deadline: float = 30.0  # seconds from the headers to the response, and to read each MiB of the response
    unread: int = 256 << 20  # bytes of responses that clients have not read yet
    connections: int = 1000


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
