"""Work on all cores of the machine: in threads if it releases the GIL, as TensorFlow's does, or in processes."""

import collections
import contextlib
import multiprocessing
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ..errors import UserError, describe_end

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

    A call whose process is killed is made once more, in a new one. The processes end with this object, and when this
    process ends in any way: then their pipes are closed. Each imports the main module first, unless that was started as
    `python -m PACKAGE`.

    Args:
        what: What a process does, for messages.
        make: A class or function that returns the function, in each process, given the other arguments. Importing its
            module must be fast.
    """

    def __init__(self, what: str, make: Callable[..., Callable], *arguments: Any):
        self._what, self._make = what, (make, *arguments)
        self._free: queue.Queue[tuple[BaseProcess, Connection] | None] = queue.Queue()
        for _ in range(cores()):
            self._free.put(None)  # a process starts when it is needed

    def __call__(self, *arguments: Any) -> Any:
        """Returns the result of the function, or raises its error.

        Raises:
            UserError: The process is killed, twice.
        """
        process, kept = self._free.get(), None  # not kept with an answer that nobody has taken
        try:
            for is_last in (False, True):
                process = process or self._start()
                try:
                    process[1].send(arguments)
                    result, error = process[1].recv()
                    kept = process
                    break
                except (EOFError, OSError):
                    how, process = _end(*process), None
                    if is_last:
                        raise UserError(
                            f"a process that {self._what} {how}; if memory ran out, make room or use fewer cores "
                            "(taskset), and start again"
                        ) from None
        finally:
            self._free.put(kept)
        if error:
            raise error
        return result

    def _start(self) -> tuple[BaseProcess, Connection]:
        pipe, other = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(other, *self._make), daemon=True)
        process.start()
        other.close()  # else this end would not notice the end of the process
        return process, pipe


def _end(process: BaseProcess, pipe: Connection) -> str:
    """Waits for the end of a process and returns how it ended."""
    pipe.close()
    process.join()
    return describe_end(process.exitcode)


def _serve(pipe: Connection, make: Callable[..., Callable], *arguments: Any) -> None:
    """Calls the function in a process of `Processes`, until the pipe is closed."""
    os.setsid()  # signals to the group, as of Ctrl-C, are for the process that asks: it still needs this one
    function = make(*arguments)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            given = pipe.recv()
            try:
                pipe.send((function(*given), None))
            except Exception as error:  # for the process that asks
                pipe.send((None, error))
