"""The service as a process: listens, and ends in order."""

import logging
import signal
import socket
import sys
from pathlib import Path

import uvicorn

from ...errors import UserError
from .app import Service
from .limits import Limits
from .protocol import TimedProtocol
from .store import Store

_log = logging.getLogger("serve")


def serve(models: Path, host: str, port: int, limits: Limits) -> None:
    """Serves the models of a folder until SIGTERM or Ctrl-C; then answers the requests it has.

    Raises:
        UserError: No model can be loaded, or the address cannot be used.
    """
    with _listen(host, port) as address:  # before loading the models, which takes time
        store = Store(models)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # process 1 of a container ignores it otherwise
        store.open()
        timeouts = {"headers_timeout": limits.headers_timeout, "reading_timeout": limits.deadline}
        protocol = type("Protocol", (TimedProtocol,), timeouts)
        config = uvicorn.Config(
            Service(store, limits).app,
            http=protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=round(limits.deadline) + 1,
        )
        server = uvicorn.Server(config)
        # uvicorn replaces these handlers while it runs and raises the signal again when it ends.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        address.listen(2048)
        _log.info("serving %s at http://%s:%d", models, host, address.getsockname()[1])
        server.run(sockets=[address])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"cannot listen on {host} port {port}: {why}; give another --host or --port") from None
    return listener
