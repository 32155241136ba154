"""Runs the service as a process: listens, serves, and ends in order."""

import contextlib
import functools
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator

import uvicorn

from ...errors import UserError
from .access import Access
from .app import Service
from .connection import Connection, ConnectionLimit
from .limits import Limits
from .store import Store

_FILES = 200  # open files besides connections
_ACCEPTED = 64  # new connections in a turn of the event loop, whose heads are then read
_QUEUED = 2048  # new connections that wait in the kernel
_SWITCH = 5e-4  # seconds for which a thread may run Python while the event loop waits
_next_log: dict[str, float] = {}  # when a message may be logged again
_log = logging.getLogger("serve")


def serve(store: Store, host: str, port: int, limits: Limits, access: Access) -> None:
    """Serves the models of a store until SIGTERM or Ctrl-C, then answers the requests it has.

    A second Ctrl-C ends at once.
    """
    with _listen(host, port) as address:  # before loading the models, which takes time
        # Process 1 of a container ignores the signal otherwise.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        sys.setswitchinterval(_SWITCH)
        store.open()
        for name in ("serve.requests", "uvicorn.error"):
            logging.getLogger(name).addFilter(_is_due)
        limit = ConnectionLimit(_most_connections(limits.connections))
        config = uvicorn.Config(
            Service(store, limits, access).app,
            http=functools.partial(Connection, limit, limits),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_ACCEPTED,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=round(limits.deadline) + 1,
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # it would raise signals again at the end

        def end(number: int, _) -> None:
            if server.should_exit and number == signal.SIGINT:
                _log.warning("ended by a second Ctrl-C; requests in progress get no answer")
                os._exit(128 + number)
            server.should_exit = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        with _address_errors(host, port):  # another service may have begun to listen meanwhile
            address.listen()
        shown = f"[{host}]" if ":" in host else host
        _log.info("serving %s at http://%s:%d", store.root, shown, address.getsockname()[1])
        server.run(sockets=[address])


class _Listener(socket.socket):
    """Keeps its queue, which asyncio would make as short as what it accepts in a turn."""

    def listen(self, backlog: int = 0) -> None:
        super().listen(_QUEUED)


def _is_due(record: logging.LogRecord) -> bool:
    """Returns whether no message of this kind was logged within the last second.

    uvicorn's advice to install WebSockets, which follows each `Upgrade`, is never due.
    """
    kind = str(record.msg)  # without its arguments
    now = time.monotonic()
    is_due = now >= _next_log.get(kind, 0.0) and not kind.startswith("No supported WebSocket")
    if is_due:
        _next_log[kind] = now + 1.0
    return is_due


def _most_connections(wanted: int) -> int:
    """Returns how many connections may be open; raises the limit of open files if allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = max(soft, min(hard, wanted + _FILES))  # -1 stands for no limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return wanted if files < 0 else max(1, min(wanted, files - _FILES))


def _listen(host: str, port: int) -> _Listener:
    with _address_errors(host, port), contextlib.ExitStack() as stack:
        family, *given, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = stack.enter_context(_Listener(family, *given))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        stack.pop_all()
    return listener


@contextlib.contextmanager
def _address_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; give another --host "
            "or --port"
        ) from None
