"""Measures the norms of untrained models and keeps the result with the logs."""

import json
import sys
from typing import Any

from nmt.storage.files import atomic_write

from ..baseline import commit_of, execute
from ..corpus import Corpus
from ..place import Place

KEPT = "initial_scale.json"
PAPERS_SIZE = (512, 1024)  # embedding and state
_PROGRAM = "experiments.translation.inside.initial_scale"
_KINDS = ("layernorm", "rmsnorm")


def measure_initial_scale(corpus: Corpus, place: Place) -> None:
    """Measures the norms of untrained models, unless that is done.

    Args:
        corpus: The corpus whose model is measured.
        place: Where the patched copy and the logs are.

    Raises:
        UserError: The measurement failed.
    """
    if read_initial_scale(place):
        return
    print(f"measuring: {KEPT}", file=sys.stderr)
    found = place.work / KEPT
    sizes = dict.fromkeys([(corpus.options["embedding_size"], corpus.options["state_size"]), PAPERS_SIZE])
    given = [word for size in sizes for word in ("--size", *map(str, size))]
    execute(place, "-m", _PROGRAM, "--kinds", *_KINDS, *given, "--to", str(found))
    measured = {**json.loads(found.read_text(encoding="utf-8")), "commit": commit_of(place)}
    place.logs.mkdir(parents=True, exist_ok=True)
    with atomic_write(place.logs / KEPT) as file:
        json.dump(measured, file, indent=2)
        file.write("\n")


def read_initial_scale(place: Place) -> dict[str, Any] | None:
    """Returns the measurements as `inside.initial_scale` writes them, or `None`."""
    path = place.logs / KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
