"""Work on all cores of the machine: in threads if it releases the GIL, as TensorFlow's does, or in processes."""

import collections
import contextlib
import os
import pickle
import queue
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any


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

    The processes end with this object, and when this process ends in any way: then their input ends.

    Args:
        make: A class or function that returns the function, in each process. Importing its module must be fast.
        *arguments: The arguments of `make`.
    """

    def __init__(self, make: Callable[..., Callable], *arguments: Any):
        self._make, self._arguments = make, arguments
        self._started: list[subprocess.Popen] = []
        self._free: queue.Queue[subprocess.Popen | None] = queue.Queue()
        for _ in range(cores()):
            self._free.put(None)  # a process starts when it is needed
        weakref.finalize(self, _end, self._started)

    def __call__(self, *arguments: Any) -> Any:
        """Returns the result of the function."""
        process = self._free.get()
        try:
            process = process or self._start()
            pickle.dump(arguments, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        finally:
            self._free.put(process)

    def _start(self) -> subprocess.Popen:
        # Neither a fork, which would share the threads of TensorFlow, nor `multiprocessing`, which imports the main
        # module again. A new session: Ctrl-C is for the process that asks.
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._started.append(process)
        pickle.dump((self._make, self._arguments), process.stdin)
        return process


def serve() -> None:
    """Calls the function in a process of `Processes`, until its input ends."""
    make, arguments = pickle.load(sys.stdin.buffer)
    function = make(*arguments)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pickle.dump(function(*pickle.load(sys.stdin.buffer)), sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.kill()
        process.communicate()
