"""Uses all cores: by threads for work that releases the GIL, as TensorFlow's, or by processes."""

import collections
import contextlib
import math
import multiprocessing
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .errors import UserError, describe_end

_SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Returns the number of cores that this process may use.

    Args:
        quota: File in which Linux says how much processor time a container gets: microseconds of
            each period, and the period, such as `150000 100000` for one core and a half, or `max
            100000` for all.
    """
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    with contextlib.suppress(OSError, ValueError):
        time, period = map(int, quota.read_text("ascii").split())
        usable = min(usable, max(1, math.ceil(time / period)))
    return usable


def parallel_map(
    function: Callable[[Any], Any], items: Iterable, threads: int | None = None
) -> Iterator:
    """Yields the result of each item, in order, computed a few items ahead in threads."""
    threads = threads or cores()
    pool = ThreadPoolExecutor(threads)
    waiting = collections.deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class Killed(Exception):
    """Says how the process of a call ended before it answered."""


class Process:
    """Calls a function in a process of its own, one call at a time.

    The process starts at the first call, and again after it was killed. It ends with this object,
    and when this process ends in any way: then its pipe is closed. It imports the main module
    first, unless that was started as `python -m PACKAGE`.

    Args:
        make: A class or function that returns the function, in the process, given the arguments.
            Importing its module must be fast.
        seconds: Longest time for an answer; by default, any.
    """

    def __init__(
        self, make: Callable[..., Callable], *arguments: Any, seconds: float | None = None
    ):
        self._make = (make, *arguments)
        self._seconds = seconds
        self._process = None

    def __call__(self, *arguments: Any) -> Any:
        """Returns the result of the function, or raises its error.

        Raises:
            Killed: The process is killed.
            TimeoutError: It does not answer in time, so this kills it.
        """
        if not self._process:
            self._pipe, other = _SPAWN.Pipe()
            self._process = _SPAWN.Process(target=_serve, args=(other, *self._make), daemon=True)
            self._process.start()
            other.close()  # else this end would not notice the end of the process
        try:
            self._pipe.send(arguments)
            is_late = not self._pipe.poll(self._seconds)
            result, error = (None, None) if is_late else self._pipe.recv()
        except (EOFError, OSError):  # it ended, perhaps in the middle of an answer
            raise Killed(self.end()) from None
        except BaseException:  # such as Ctrl-C, after which nobody takes the answer
            self.end()
            raise
        if is_late:
            self.end()
            raise TimeoutError(f"did not answer within {self._seconds:g} seconds")
        if error:
            raise error
        return result

    def end(self) -> str:
        """Ends the process, if there is one, and returns how it ended."""
        process = self._process
        self._process = None
        if not process:
            return ""
        self._pipe.close()
        process.join(5)  # it ends by itself, unless it is in a call
        process.kill()
        process.join()
        return describe_end(process.exitcode)


class ProcessPool:
    """Calls a function in one process for each core, from any thread.

    A call whose process is killed is made again.
    """

    def __init__(self, what: str, make: Callable[..., Callable], *arguments: Any):
        self._what = what
        self._free: queue.Queue[Process] = queue.Queue()
        for _ in range(cores()):
            self._free.put(Process(make, *arguments))

    def __call__(self, *arguments: Any) -> Any:
        """Returns the result of the function, or raises its error."""
        process = self._free.get()
        try:
            with contextlib.suppress(Killed):
                return process(*arguments)
            return process(*arguments)
        except Killed as error:
            raise UserError(
                f"a process that {self._what} {error}; if memory ran out, make room or use fewer "
                "cores (taskset), and start again"
            ) from None
        finally:
            self._free.put(process)


def _serve(pipe: Connection, make: Callable[..., Callable], *arguments: Any) -> None:
    """Calls the function in a process of `Process`, until the pipe is closed."""
    os.setsid()  # Ctrl-C is for the process that asks, which still needs this one
    function = make(*arguments)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            given = pipe.recv()
            try:
                pipe.send((function(*given), None))
            except Exception as error:  # for the process that asks
                pipe.send((None, error))
