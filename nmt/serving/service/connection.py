"""HTTP connections that do not wait for ever for a client that sends nothing or reads nothing."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_log = logging.getLogger("serve")


class Connection(asyncio.Protocol):
    """Ends a connection whose client does not send the head of a request, or does not read a response, in time.

    It passes everything on to the protocol of uvicorn, which alone limits only the time between two requests.

    The ASGI scope of each request has this connection in its `state`.

    Args:
        protocol: The protocol of uvicorn, which gets the other arguments.
        headers_timeout: Seconds to send the line and headers of the next request.
        reading_timeout: Seconds to read what waits in the connection, at most `limits.PIECE`.
    """

    def __init__(self, protocol: Callable, headers_timeout: float, reading_timeout: float, *, app_state: dict, **given):
        self._protocol = protocol(app_state=app_state | {"connection": self}, **given)
        self._headers_timeout, self._reading_timeout = headers_timeout, reading_timeout
        self._requests = 0  # in progress
        self._request_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self._lost = asyncio.Event()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Within this context, the timer for the head of the next request does not run."""
        self._requests += 1
        self._request_timer = _stopped(self._request_timer)
        try:
            yield
        finally:
            self._requests -= 1

    async def until_open(self) -> None:
        """Returns at once if the connection is open; else when it is lost, after which uvicorn sends nothing.

        uvicorn itself answers invalid HTTP in the body of a request that is being answered, and then closes.
        """
        if self._transport.is_closing():
            await self._lost.wait()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._protocol.connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # pause_writing is called when anything waits to be sent
        self._watch()

    def data_received(self, data: bytes) -> None:
        try:
            self._protocol.data_received(data)
        except Exception as error:  # uvicorn cannot answer invalid HTTP once a response has begun
            _log.info("a connection is ended: %s: %s", type(error).__name__, error)
            self._transport.abort()
        self._watch()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()
        self._response_timer = asyncio.get_running_loop().call_later(self._reading_timeout, self._cut_off)

    def resume_writing(self) -> None:
        self._response_timer = _stopped(self._response_timer)
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._request_timer, self._response_timer = _stopped(self._request_timer), _stopped(self._response_timer)
        self._protocol.connection_lost(exc)
        self._lost.set()

    def _watch(self) -> None:
        """Runs the timer while no request is in progress."""
        if not self._requests and self._request_timer is None and not self._transport.is_closing():
            self._request_timer = asyncio.get_running_loop().call_later(self._headers_timeout, self._transport.close)

    def _cut_off(self) -> None:
        _log.info("a client does not read its response, so its connection is ended")
        self._transport.abort()


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    """Stops a timer, if there is one, and returns `None`."""
    if timer is not None:
        timer.cancel()
