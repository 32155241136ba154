"""Measures the seconds of an update and keeps them with the logs."""

import json
from collections.abc import Collection
from typing import Any

from nmt.storage.files import atomic_write

from ..corpus import Corpus
from ..place import Place
from .kept import keep_output, read_kept

TIMES = "times.json"
AGAIN = "layernorm 2"  # the name of LayerNorm's second model
_BENCHMARK = ("benchmarks/training.py", "--batches", "6", "--rounds", "30")


def measure_seconds(kinds: Collection[str], corpus: Corpus, place: Place) -> None:
    """Times the updates of all kinds in turn, unless that is done. Nothing else should run at that time.

    LayerNorm is timed twice, to show the noise.

    Args:
        kinds: Kinds of normalization. If one of them is new, all are timed again.
        corpus: The corpus whose batches are used.
        place: Where the patched copy and the logs are.

    Raises:
        UserError: The benchmark failed.
    """
    times = read_seconds(place)
    if times and not {*kinds, AGAIN} - times["updates"]["float32"].keys():
        return
    options = place.work / "options.json"
    with atomic_write(options) as file:
        json.dump(corpus.training(place.work), file, indent=2)
    given = ["--baseline", str(place.baseline), "--kinds", *kinds, "layernorm", "--config", str(options), "--json"]
    keep_output(place, TIMES, *_BENCHMARK, *given)


def read_seconds(place: Place) -> dict[str, Any] | None:
    """Returns the measurements as `benchmarks/training.py --json` writes them, or `None`."""
    return read_kept(place, TIMES)
