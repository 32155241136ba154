"""Measures the norms of untrained models and keeps the result with the logs."""

from typing import Any

from ..corpus import Corpus
from ..place import Place
from .kept import keep_output, read_kept

KEPT = "initial_scale.json"
PAPERS_SIZE = (512, 1024)  # embedding and state
_PROGRAM = "experiments.translation.inside.untrained_norms"
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
    sizes = dict.fromkeys([(corpus.options["embedding_size"], corpus.options["state_size"]), PAPERS_SIZE])
    given = [word for size in sizes for word in ("--size", *map(str, size))]
    keep_output(place, KEPT, "-m", _PROGRAM, "--kinds", *_KINDS, *given, "--to")


def read_initial_scale(place: Place) -> dict[str, Any] | None:
    """Returns the measurements as `inside.untrained_norms` writes them, or `None`."""
    return read_kept(place, KEPT)
