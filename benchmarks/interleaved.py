"""Takes the time of several calls in turn, so that whatever else the machine does falls on all of them alike."""

import time
from collections.abc import Callable, Mapping


def seconds_of(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Runs all calls in turn, `rounds` times after two to warm up, and returns the seconds of each in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 2):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if number >= 2:
                seconds[name].append(time.perf_counter() - start)
    return seconds
