"""Measures the seconds of an update in the patched copy, and keeps them with the logs."""

import json
import sys
from collections.abc import Collection

from nmt.storage.files import atomic_write

from ..reporting.speed import PROCESSES
from ..trials.machine import gflops
from .baseline import commit_of, execute
from .corpus import Corpus
from .place import Place

AGAIN = "layernorm 2"  # the name of LayerNorm's second model
_BENCHMARK = ("benchmarks/training.py", "--batches", "6", "--rounds", "30")


def measure_seconds(kinds: Collection[str], corpus: Corpus, place: Place) -> None:
    """Times the updates of all kinds in turn, in several processes. Nothing else should run at that
    time.

    LayerNorm is timed twice, to show the noise.

    Args:
        kinds: Kinds of normalization. If one of them is new, all are timed again.
        corpus: The corpus whose batches are used.
        place: Where the patched copy and the logs are.

    Raises:
        UserError: The benchmark failed.
    """
    processes = [
        each
        for each in place.read_times()
        if not {*kinds, AGAIN} - each["updates"]["float32"].keys()
    ]
    options = place.work / "options.json"
    found = place.work / "times.json"
    with atomic_write(options) as file:
        json.dump(corpus.training(place.work), file, indent=2)
    given = [
        "--baseline",
        str(place.baseline),
        "--kinds",
        *kinds,
        "layernorm",
        "--config",
        str(options),
        "--json",
    ]
    while len(processes) < PROCESSES:
        print("measuring times", file=sys.stderr)
        before = gflops()
        execute(place, *_BENCHMARK, *given, str(found))
        measured = json.loads(found.read_text(encoding="utf-8"))
        checks = [before, gflops()]
        processes.append({**measured, "commit": commit_of(place), "gflops": checks})
        place.write_times(processes)
