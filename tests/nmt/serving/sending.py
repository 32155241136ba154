"""Requests in bytes, also from many callers in a process of their own. Imports no TensorFlow, so
that such a process starts at once."""

import concurrent.futures
import contextlib
import os
import socket
import time


def send(port, data, whole=False):
    """Returns the status of the answer; 0 if the service ends the connection before.

    With `whole`, also if it ends it while data is sent, of which few bytes wait in the kernel.
    """
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        with contextlib.suppress(() if whole else OSError):
            connection.sendall(data)
        return int(connection.recv(12)[9:])
    return 0


def send_again_and_again(port, data, expected, callers, seconds):
    """Sends a request on this many connections at a time, in a process for this alone.

    At least one must get the expected status, or 429 for many large bodies.
    """
    os.nice(5)  # else they would take the cores of the service, as other machines do not
    end = time.monotonic() + seconds

    def call(_):
        statuses = set()
        while time.monotonic() < end:
            statuses.add(send(port, data))
        return statuses

    with concurrent.futures.ThreadPoolExecutor(callers) as threads:
        assert {expected, 429} & set().union(*threads.map(call, range(callers)))
