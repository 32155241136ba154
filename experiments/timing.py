"""Measures the seconds of updates and how they split, once, and keeps them with the logs."""

import json
import sys
from collections.abc import Collection
from typing import Any

from nmt.files import write_aside

from .baseline import commit_of, execute
from .corpus import Corpus
from .place import Place

TIMES, SPLIT = "times.json", "time_split.json"
_BENCHMARK = ("benchmarks/training.py", "--batches", "10", "--rounds", "12")


def measure(kinds: Collection[str], corpus: Corpus, place: Place) -> None:
    """Measures what is not measured yet; nothing else should run meanwhile.

    Args:
        kinds: Of normalization, whose updates are timed in turn. If one of them is new, all are timed anew.
        corpus: Whose batches they are made with.
        place: Where the patched copy is, and the logs.

    Raises:
        UserError: A process failed.
    """
    options = place.work / "options.json"
    with write_aside(options) as file:
        json.dump(corpus.training(place.work), file, indent=2)
    times = read(TIMES, place)
    if not times or set(kinds) - times["updates"]["float32"].keys():
        given = ["--baseline", str(place.baseline), "--kinds", *kinds, "--config", str(options)]
        _keep(TIMES, place, *_BENCHMARK, *given, "--json")
    if not read(SPLIT, place):
        _keep(SPLIT, place, "-m", "experiments.time_split", "--config", str(options), "--to")


def read(name: str, place: Place) -> dict[str, Any] | None:
    """Returns what was measured, or `None` if nothing was."""
    path = place.logs / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _keep(name: str, place: Place, *command: str) -> None:
    """Keeps what a command writes into the file that is its last argument."""
    print(f"measuring: {name}", file=sys.stderr)
    found = place.work / name
    execute(place, *command, str(found))
    measured = {**json.loads(found.read_text(encoding="utf-8")), "commit": commit_of(place)}
    place.logs.mkdir(parents=True, exist_ok=True)
    with write_aside(place.logs / name) as file:
        json.dump(measured, file, indent=2)
        file.write("\n")
