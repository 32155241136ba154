"""Measures the seconds of an update and keeps them with the logs."""

import json
import sys
from collections.abc import Collection
from typing import Any

from nmt.storage.files import atomic_write

from ..baseline import commit_of, execute
from ..corpus import Corpus
from ..place import Place

TIMES = "times.json"
_BENCHMARK = ("benchmarks/training.py", "--batches", "10", "--rounds", "12")


def measure_seconds(kinds: Collection[str], corpus: Corpus, place: Place) -> None:
    """Times the updates of all kinds in turn, unless that is done. Nothing else should run at that time.

    Args:
        kinds: Kinds of normalization. If one of them is new, all are timed again.
        corpus: The corpus whose batches are used.
        place: Where the patched copy and the logs are.

    Raises:
        UserError: The benchmark failed.
    """
    times = read_seconds(place)
    if times and not set(kinds) - times["updates"]["float32"].keys():
        return
    print(f"measuring: {TIMES}", file=sys.stderr)
    options, found = place.work / "options.json", place.work / TIMES
    with atomic_write(options) as file:
        json.dump(corpus.training(place.work), file, indent=2)
    given = ["--baseline", str(place.baseline), "--kinds", *kinds, "--config", str(options), "--json", str(found)]
    execute(place, *_BENCHMARK, *given)
    measured = {**json.loads(found.read_text(encoding="utf-8")), "commit": commit_of(place)}
    place.logs.mkdir(parents=True, exist_ok=True)
    with atomic_write(place.logs / TIMES) as file:
        json.dump(measured, file, indent=2)
        file.write("\n")


def read_seconds(place: Place) -> dict[str, Any] | None:
    """Returns the measurements as `benchmarks/training.py --json` writes them, or `None`."""
    path = place.logs / TIMES
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
