"""Measures the seconds of an update in the patched copy, and keeps them with the logs."""

import json
import sys
from collections.abc import Collection

from nmt.storage.files import atomic_write

from ..reporting.speed import PROCESSES
from ..runs.machine import gflops
from .baseline import commit_of, execute
from .corpus import Corpus
from .store import Store

AGAIN = "layernorm 2"  # the name of LayerNorm's second model
_BENCHMARK = ("benchmarks/training.py", "--batches", "6", "--rounds", "30")


def measure_seconds(kinds: Collection[str], corpus: Corpus, store: Store) -> None:
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
        for each in store.read_times()
        if not {*kinds, AGAIN} - each["updates"]["float32"].keys()
    ]
    options = store.work / "options.json"
    found = store.work / "times.json"
    with atomic_write(options) as file:
        json.dump(corpus.training(store.work), file, indent=2)
    given = [
        "--baseline",
        str(store.baseline),
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
        execute(store, *_BENCHMARK, *given, str(found))
        measured = json.loads(found.read_text(encoding="utf-8"))
        checks = [before, gflops()]
        processes.append({**measured, "commit": commit_of(store), "gflops": checks})
        store.write_times(processes)
