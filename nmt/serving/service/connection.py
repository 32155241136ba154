"""Limits HTTP connections: their number, how long each waits, how much is parsed at once."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import h11
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import Limits

_READ = 512  # bytes that are parsed in a turn of the event loop
_READ_BODY = 8192  # the same within a body of known length or a chunk, which is quick to parse
_FEW = 32  # parts in a read that need no pause: a header is one, a chunk four
_PAUSE = 1e-4  # seconds for each part, about four times what the parsing of a header takes
_log = logging.getLogger("serve.requests")


class ConnectionLimit:
    """Limits the open connections. Beyond the limit, the one that is idle for longest is ended.

    A connection is idle while no request on it is in progress. The parsing of many chunks and
    headers is spread over time, for all connections together.
    """

    def __init__(self, most: int):
        self._most = most
        self._busy: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # in the order in which they became idle
        self._free = 0.0  # when the next chunks may be parsed

    @property
    def is_reached(self) -> bool:
        """Whether requests are in progress on more connections than the limit."""
        return len(self._busy) > self._most

    def update(self, connection: "Connection") -> None:
        """Counts a connection that is new, or has become idle, busy or lost."""
        self._busy.discard(connection)
        self._idle.pop(connection, None)
        if connection.lost.is_set():
            return
        if connection.requests:
            self._busy.add(connection)
            return
        self._idle[connection] = None
        *others, _ = self._idle
        if others and len(self._idle) + len(self._busy) > self._most:
            # A client that reads a response now is ended last.
            ended = min(others, key=lambda each: each.transport.get_write_buffer_size() > 0)
            del self._idle[ended]
            ended.transport.abort()

    def pause(self, parts: int) -> float:
        """Returns the seconds to wait after the parsing of this many parts."""
        now = time.monotonic()
        self._free = max(self._free, now) + parts * _PAUSE
        return self._free - now


class _Parser(h11.Connection):
    """Counts chunks and headers, and refuses too many of a request."""

    def __init__(self, limits: Limits):
        super().__init__(h11.SERVER, limits.head)
        self._limits = limits
        self._chunks = 0
        self._lines = 0  # of headers or trailers that have not ended
        self.parts = 0  # of chunks and headers since the last read
        self.refusal = ""

    @property
    def left(self) -> int:
        """Bytes of a body of known length, or of a chunk, that are not read yet."""
        reader = getattr(self, "_reader", None)
        return getattr(reader, "_bytes_in_chunk", 0) or getattr(reader, "_remaining", 0)

    def receive_data(self, data: bytes) -> None:
        self._lines += data.count(b"\n")
        super().receive_data(data)

    def next_event(self) -> Any:
        event = super().next_event()
        if event is h11.NEED_DATA and self._lines > self._limits.headers + 1:
            self._refuse(f"a request may have {self._limits.headers} headers; send fewer")
        if event is not h11.NEED_DATA:
            self._lines = 0
        if isinstance(event, h11.Request):
            self._chunks = 0
        if isinstance(event, (h11.Request, h11.EndOfMessage)):
            self.parts += len(event.headers)
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            self.parts += 4
            if self._chunks > self._limits.chunks:
                self._refuse(f"a body may have {self._limits.chunks} chunks; send larger ones")
        return event

    def _refuse(self, why: str) -> NoReturn:
        self.refusal = why
        raise h11.RemoteProtocolError(why)


class _Flow(FlowControl):
    """Pauses reading for a time, which uvicorn cannot shorten."""

    _is_paused = False

    def resume_reading(self) -> None:
        self.read_paused = False
        if not self._is_paused:
            self._transport.resume_reading()

    def pause_reading_for(self, seconds: float) -> None:
        self._is_paused = True
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._is_paused = False
        if not self.read_paused:
            self._transport.resume_reading()


class Connection(H11Protocol, asyncio.BufferedProtocol):
    """Ends a connection whose client does not send the head of a request, or does not read a
    response, in time.

    uvicorn itself limits only the time between two requests. The ASGI scope of each request has
    this connection in its `state`.

    Args:
        connection_limit: Limits all connections of the service.
        limits: `head_timeout` for the head of the next request; `deadline` to read what waits, at
            most `PIECE`.
    """

    def __init__(
        self,
        connection_limit: ConnectionLimit,
        limits: Limits,
        *,
        app_state: dict[str, Any],
        **given: Any,
    ):
        super().__init__(app_state=app_state | {"connection": self}, **given)
        self.conn: _Parser = _Parser(limits)
        self.connection_limit = connection_limit
        self._limits = limits
        self._buffer = bytearray(_READ_BODY)
        self.requests = 0  # in progress
        self._request_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self.lost = asyncio.Event()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Stops the timer for the head of the next request within this context."""
        self.requests += 1
        self.connection_limit.update(self)
        self._request_timer = _stopped(self._request_timer)
        try:
            yield
        finally:
            self.requests -= 1
            self.connection_limit.update(self)

    async def until_open(self) -> None:
        """Returns at once if the connection is open; else when it is lost, after which uvicorn
        sends nothing.

        uvicorn itself answers invalid HTTP in the body of a request that is being answered, and
        then closes.
        """
        if self.transport.is_closing():
            await self.lost.wait()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        # pause_writing is called when anything waits to be sent.
        transport.set_write_buffer_limits(high=0)
        self.connection_limit.update(self)
        self._watch()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns where to put the next bytes. What is not read yet waits in the system."""
        return memoryview(self._buffer)[: max(_READ, min(_READ_BODY, self.conn.left))]

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self.data_received(bytes(self._buffer[:nbytes]))
        except Exception as error:  # uvicorn cannot answer invalid HTTP once a response has begun
            _log.info("a connection is ended: %s: %s", type(error).__name__, error)
            self.transport.abort()
        self._watch()
        parts = self.conn.parts
        self.conn.parts = 0
        if parts > _FEW:
            self.flow.pause_reading_for(self.connection_limit.pause(parts))

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(self.conn.refusal or msg)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._response_timer = asyncio.get_running_loop().call_later(
            self._limits.deadline, self._cut_off
        )

    def resume_writing(self) -> None:
        self._response_timer = _stopped(self._response_timer)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._request_timer = _stopped(self._request_timer)
        self._response_timer = _stopped(self._response_timer)
        super().connection_lost(None)  # uvicorn keeps one with an error for timeout_keep_alive
        self.lost.set()
        self.connection_limit.update(self)

    def _watch(self) -> None:
        """Runs the timer while no request is in progress."""
        if not self.requests and self._request_timer is None and not self.transport.is_closing():
            self._request_timer = asyncio.get_running_loop().call_later(
                self._limits.head_timeout, self.transport.close
            )

    def _cut_off(self) -> None:
        _log.info("a client does not read its response, so its connection is ended")
        self.transport.abort()


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    """Stops a timer, if there is one, and returns `None`."""
    if timer is not None:
        timer.cancel()
