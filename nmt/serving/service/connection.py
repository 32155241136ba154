"""HTTP connections that do not wait for ever for a client that sends nothing or reads nothing."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .limits import Limits

_log = logging.getLogger("serve")


class Places:
    """The open connections. When there are more than a limit, the one that is idle for longest is
    ended.

    A connection is idle while no request on it is in progress.
    """

    def __init__(self, most: int):
        self._most = most
        self._busy: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # in the order in which they became idle

    @property
    def are_taken(self) -> bool:
        """Whether requests are in progress on more connections than the limit."""
        return len(self._busy) > self._most

    def update(self, connection: "Connection") -> None:
        """Counts a connection that is new, or has become idle, busy or lost."""
        self._busy.discard(connection)
        self._idle.pop(connection, None)
        if connection.requests and not connection.lost.is_set():
            self._busy.add(connection)
        elif not connection.lost.is_set():
            self._idle[connection] = None
            *others, _ = self._idle
            if others and len(self._idle) + len(self._busy) > self._most:
                ended = min(
                    others, key=lambda each: each.transport.get_write_buffer_size() > 0
                )  # else it is read now
                del self._idle[ended]
                ended.transport.abort()


class Connection(asyncio.Protocol):
    """Ends a connection whose client does not send the head of a request, or does not read a
    response, in time.

    It passes everything on to the protocol of uvicorn, which alone limits only the time between two
    requests.

    The ASGI scope of each request has this connection in its `state`.

    Args: protocol: The protocol of uvicorn, which gets the other arguments. places: All connections
        of the service. limits: `headers_timeout` for the head of the next request; `deadline` to
        read what waits, at most `PIECE`.
    """

    def __init__(
        self, protocol: Callable, places: Places, limits: Limits, *, app_state: dict, **given
    ):
        self._protocol = protocol(app_state=app_state | {"connection": self}, **given)
        self.places = places
        self._limits = limits
        self.requests = 0  # in progress
        self._request_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self.lost = asyncio.Event()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Within this context, the timer for the head of the next request does not run."""
        self.requests += 1
        self.places.update(self)
        self._request_timer = _stopped(self._request_timer)
        try:
            yield
        finally:
            self.requests -= 1
            self.places.update(self)

    async def until_open(self) -> None:
        """Returns at once if the connection is open; else when it is lost, after which uvicorn
        sends nothing.

        uvicorn itself answers invalid HTTP in the body of a request that is being answered, and
        then closes.
        """
        if self.transport.is_closing():
            await self.lost.wait()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._protocol.connection_made(transport)
        transport.set_write_buffer_limits(
            high=0
        )  # pause_writing is called when anything waits to be sent
        self.places.update(self)
        self._watch()

    def data_received(self, data: bytes) -> None:
        try:
            self._protocol.data_received(data)
        except Exception as error:  # uvicorn cannot answer invalid HTTP once a response has begun
            _log.info("a connection is ended: %s: %s", type(error).__name__, error)
            self.transport.abort()
        self._watch()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()
        self._response_timer = asyncio.get_running_loop().call_later(
            self._limits.deadline, self._cut_off
        )

    def resume_writing(self) -> None:
        self._response_timer = _stopped(self._response_timer)
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._request_timer = _stopped(self._request_timer)
        self._response_timer = _stopped(self._response_timer)
        self._protocol.connection_lost(exc)
        self.lost.set()
        self.places.update(self)

    def _watch(self) -> None:
        """Runs the timer while no request is in progress."""
        if not self.requests and self._request_timer is None and not self.transport.is_closing():
            self._request_timer = asyncio.get_running_loop().call_later(
                self._limits.headers_timeout, self.transport.close
            )

    def _cut_off(self) -> None:
        _log.info("a client does not read its response, so its connection is ended")
        self.transport.abort()


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    """Stops a timer, if there is one, and returns `None`."""
    if timer is not None:
        timer.cancel()
