"""The service as a process: listens, and ends in order."""

import contextlib
import functools
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import UserError
from .access import Access
from .app import Service
from .connection import Connection, Places
from .limits import Limits
from .store import Store

_FILES = 200  # open files besides connections
_log = logging.getLogger("serve")


def serve(models: Path, host: str, port: int, limits: Limits, access: Access) -> None:
    """Serves the models of a folder until SIGTERM or Ctrl-C, then answers what it has; a second Ctrl-C ends at once."""
    with _listen(host, port) as address:  # before loading the models, which takes time
        store = Store(models)
        signal.signal(
            signal.SIGTERM, lambda *_: sys.exit(0)
        )  # process 1 of a container ignores it otherwise
        store.open()
        most = _most_connections(limits.connections)
        config = uvicorn.Config(
            Service(store, limits, access).app,
            http=functools.partial(Connection, H11Protocol, Places(most), limits),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=round(limits.deadline) + 1,
        )
        server = uvicorn.Server(config)

        def end(number: int, _) -> None:
            if server.should_exit and number == signal.SIGINT:
                _log.warning("ended by a second Ctrl-C; requests in progress get no answer")
                os._exit(128 + number)
            server.should_exit = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        with _address_errors(host, port):  # another service may have begun to listen meanwhile
            address.listen(2048)
        shown = f"[{host}]" if ":" in host else host
        _log.info("serving %s at http://%s:%d", models, shown, address.getsockname()[1])
        with ThreadPoolExecutor(1) as thread:  # uvicorn handles signals only in the main thread
            running = thread.submit(server.run, sockets=[address])
            while (
                not running.done()
            ):  # a signal that another thread gets does not end a wait without a limit
                wait([running], 0.2)
            running.result()


def _most_connections(wanted: int) -> int:
    """Returns how many connections may be open, after raising the limit of open files if need be and if allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = max(soft, min(hard, wanted + _FILES))  # -1 stands for no limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return wanted if files < 0 else max(1, min(wanted, files - _FILES))


def _listen(host: str, port: int) -> socket.socket:
    with _address_errors(host, port):
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    return listener


@contextlib.contextmanager
def _address_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise UserError(
            f"cannot listen on {host} port {port}: {why}; give another --host or --port"
        ) from None
