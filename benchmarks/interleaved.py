"""Times several calls in turn, so that other load on the machine affects all of them equally."""

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

Name = TypeVar("Name")


def orders(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Yields random orders of the names; the sequence is the same in every run.

    Each call then follows each other call about equally often, so all of them find the CPU caches in the same states.
    """
    generator, names = random.Random(0), list(names)
    while True:
        yield generator.sample(names, len(names))


def seconds_of(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Runs all calls in turn and returns the seconds of each call in each round, after two rounds of warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number, order in enumerate(itertools.islice(orders(calls), rounds + 2)):
        for name in order:
            start = time.perf_counter()
            calls[name]()
            if number >= 2:
                seconds[name].append(time.perf_counter() - start)
    return seconds
