"""Takes the time of several calls in turn, so that whatever else the machine does falls on all of them alike."""

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

Name = TypeVar("Name")


def orders(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Yields one random order of the names after the other, the same ones in every run.

    So everyone comes after everyone else, and what it leaves in the caches, about equally often.
    """
    generator, names = random.Random(0), list(names)
    while True:
        yield generator.sample(names, len(names))


def seconds_of(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Runs all calls in turn, `rounds` times after two to warm up, and returns the seconds of each in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number, order in enumerate(itertools.islice(orders(calls), rounds + 2)):
        for name in order:
            start = time.perf_counter()
            calls[name]()
            if number >= 2:
                seconds[name].append(time.perf_counter() - start)
    return seconds
