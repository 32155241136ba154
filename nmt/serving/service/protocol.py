"""HTTP connections that do not wait for ever for a client that sends nothing or reads nothing."""

import asyncio
import logging

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_log = logging.getLogger("serve")


class TimedProtocol(H11Protocol):
    """Ends a connection whose client does not send the head of a request, or does not read a response, in time.

    uvicorn alone limits only the time between two requests.
    """

    headers_timeout = 10.0  # seconds to send the line and headers of the next request
    reading_timeout = 30.0  # seconds to read what waits in the connection, at most `outbox.PIECE`
    _request_timer: asyncio.TimerHandle | None = None
    _response_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # pause_writing is called when anything waits to be sent
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answers invalid HTTP, unless a response has begun, and ends the connection and the request in progress."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # else it would send a second response
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._response_timer = self.loop.call_later(self.reading_timeout, self._cut_off)

    def resume_writing(self) -> None:
        self._stop_response_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._stop_response_timer()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Runs the timer while no request is in progress."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._unwatch()
        elif self._request_timer is None:
            self._request_timer = self.loop.call_later(self.headers_timeout, self.transport.close)

    def _unwatch(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _cut_off(self) -> None:
        _log.info("a client does not read its response, so its connection is ended")
        self.transport.abort()

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None
