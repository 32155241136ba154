"""Times the updates of every row in turn, compiled by XLA and as plain operations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from benchmarks.interleaved import seconds_of

from ..reporting.speed import AGAIN
from .book import provenance
from .trial import Setting, TrialRow

ROUNDS = 30


def time_updates(
    rows: Sequence[TrialRow],
    batches: Mapping[Setting, tuple[Any, Any]],
    build: Callable[[TrialRow, Setting], keras.Model],
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Returns the seconds of an update of every row. Nothing else should run at that time.

    Args:
        rows: The rows. `layernorm` is timed twice.
        batches: Inputs and targets of a batch, by setting.
        build: Builds and compiles the model of a row in a setting.
        rounds: Number of updates of each model.

    Returns:
        `seconds`, by setting, then by `XLA` or `plain`, then by row: the seconds of each round. In a round all rows
        take turns.
    """
    named = {row.name: row for row in rows}
    if "layernorm" in named:
        named[AGAIN] = named["layernorm"]
    seconds: dict[str, dict[str, Any]] = {}
    for setting, batch in batches.items():
        for mode, compiled in (("XLA", True), ("plain", False)):
            calls = {name: _update(build(row, setting), compiled, batch) for name, row in named.items()}
            seconds.setdefault(setting.name, {})[mode] = seconds_of(calls, rounds)
            keras.backend.clear_session()
    return {"seconds": seconds, **provenance()}


def _update(model: keras.Model, compiled: bool, batch: tuple[Any, Any]) -> Callable[[], object]:
    """Returns a function that makes one update of a model."""
    model.compile(optimizer=model.optimizer, loss=model.loss, jit_compile=compiled)
    tensors = keras.tree.map_structure(keras.ops.convert_to_tensor, batch)
    return lambda: model.train_on_batch(*tensors)
