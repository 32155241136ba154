"""Work on all cores of the machine: in threads if it releases the GIL, as TensorFlow's does, or in processes."""

import collections
import contextlib
import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ..errors import UserError

_SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(function: Callable[[Any], Any], items: Iterable, threads: int | None = None) -> Iterator:
    """Yields the result of each item, in order. Takes only a few items ahead, so few results wait.

    By default, there is a thread for each core.
    """
    threads = threads or cores()
    pool, waiting = ThreadPoolExecutor(threads), collections.deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class Processes:
    """Calls a function in other processes, at most one for each core. Threads may call at the same time.

    The processes end with this object, and when this process ends in any way: then their pipes are closed.

    Args:
        make: A class or function that returns the function, in each process, given the other arguments. Importing its
            module must be fast.
    """

    def __init__(self, make: Callable[..., Callable], *arguments: Any):
        self._make = (make, *arguments)
        self._free: queue.Queue[tuple[BaseProcess, Connection] | None] = queue.Queue()
        for _ in range(cores()):
            self._free.put(None)  # a process starts when it is needed

    def __call__(self, *arguments: Any) -> Any:
        """Returns the result of the function.

        Raises:
            UserError: The process that computes it ends. The next call starts another one.
        """
        free, found = self._free.get(), None
        try:
            process, pipe = free or self._start()
            try:
                pipe.send(arguments)
                result = pipe.recv()
            except (EOFError, OSError):
                process.join()
                raise UserError(
                    f"a process that splits text at random {describe_end(process.exitcode)}; if memory ran out, make "
                    "room or use fewer cores (taskset), and start again"
                ) from None
            found = process, pipe
            return result
        finally:
            self._free.put(found)

    def _start(self) -> tuple[BaseProcess, Connection]:
        pipe, other = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(other, *self._make), daemon=True)
        process.start()
        other.close()  # else this end would not notice the end of the process
        return process, pipe


def _serve(pipe: Connection, make: Callable[..., Callable], *arguments: Any) -> None:
    """Calls the function in a process of `Processes`, until the pipe is closed."""
    os.setsid()  # signals to the group, as of Ctrl-C, are for the process that asks: it still needs this one
    function = make(*arguments)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            pipe.send(function(*pipe.recv()))


def describe_end(status: int) -> str:
    """Returns how a process ended, given its exit status, which is negative for a signal."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
