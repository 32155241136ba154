"""The limits of the service."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of the service. A row is an entry of a request's first dimension, such as a sentence."""

    workers: int = 1  # batches computed at the same time
    batch: int = 64  # rows in a batch
    batch_bytes: int = 8 << 10  # bytes of the inputs in a batch of several rows
    batch_wait: float = 0.003  # seconds to wait for the callers of the last batch; longer after a long one
    queue: int = 1024  # rows that wait or are computed
    queue_bytes: int = 16 << 20  # bytes of the inputs that wait or are computed
    rows: int = 512  # in a request
    body: int = 1 << 20  # bytes in a request
    headers_timeout: float = 10.0  # seconds to send the line and headers of a request
    deadline: float = 30.0  # seconds from the headers to the response, and to read each MiB of the response
    unread: int = 256 << 20  # bytes of responses that clients have not read yet
    connections: int = 1000
