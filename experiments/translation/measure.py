"""Measurements by programs of the patched copy, kept with the logs: seconds of an update, norms of untrained models."""

import json
import sys
from collections.abc import Collection
from typing import Any

from nmt.storage.files import atomic_write

from ..reporting.speed import PROCESSES
from .baseline import commit_of, execute
from .corpus import Corpus
from .place import Place

AGAIN = "layernorm 2"  # the name of LayerNorm's second model
PAPERS_SIZE = (512, 1024)  # embedding and state
INITIAL_SCALE = "initial_scale"  # the name of the file with the norms of untrained models
_BENCHMARK = ("benchmarks/training.py", "--batches", "6", "--rounds", "30")
_PROGRAM = ("-m", "experiments.translation.inside.untrained_norms", "--kinds", "layernorm", "rmsnorm")


def measure_seconds(kinds: Collection[str], corpus: Corpus, place: Place) -> None:
    """Times the updates of all kinds in turn, in several processes. Nothing else should run at that time.

    LayerNorm is timed twice, to show the noise.

    Args:
        kinds: Kinds of normalization. If one of them is new, all are timed again.
        corpus: The corpus whose batches are used.
        place: Where the patched copy and the logs are.

    Raises:
        UserError: The benchmark failed.
    """
    processes = [each for each in place.read_times() if not {*kinds, AGAIN} - each["updates"]["float32"].keys()]
    options = place.work / "options.json"
    with atomic_write(options) as file:
        json.dump(corpus.training(place.work), file, indent=2)
    given = ["--baseline", str(place.baseline), "--kinds", *kinds, "layernorm", "--config", str(options), "--json"]
    while len(processes) < PROCESSES:
        processes.append(_output(place, "times", *_BENCHMARK, *given))
        place.write_times(processes)


def measure_initial_scale(corpus: Corpus, place: Place) -> None:
    """Measures the norms of untrained models of the corpus's size and of the paper's, unless that is done.

    Raises:
        UserError: The measurement failed.
    """
    if place.read_file(INITIAL_SCALE):
        return
    sizes = dict.fromkeys([(corpus.options["embedding_size"], corpus.options["state_size"]), PAPERS_SIZE])
    given = [word for size in sizes for word in ("--size", *map(str, size))]
    place.write(INITIAL_SCALE, _output(place, INITIAL_SCALE, *_PROGRAM, *given, "--to"))


def _output(place: Place, name: str, *words: str) -> dict[str, Any]:
    """Runs a program in the patched copy and returns the JSON object that it writes, with the commit.

    The file that the program writes is added to the end of its command.
    """
    print(f"measuring: {name}", file=sys.stderr)
    found = place.work / f"{name}.json"
    execute(place, *words, str(found))
    return {**json.loads(found.read_text(encoding="utf-8")), "commit": commit_of(place)}
