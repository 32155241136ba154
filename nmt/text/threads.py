"""Work on all cores of the machine, in threads. Only code that releases the GIL, such as TensorFlow, gets faster."""

import collections
import os
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
