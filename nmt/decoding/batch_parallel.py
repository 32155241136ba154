"""Computes several batches at a time, one on each core, with one thread for each operation.

The operations of a decoding step are small: more threads gain little within an operation and much
between batches.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..concurrency import cores, parallel_map
from ..text.batches import TOKENS, cut_batches

_LEAST_SENTENCES = 16  # of a batch, so that many cores do not make tiny batches
_LEAST_TOKENS = 2048


def use_cores_for_batches(batches: int | None = None) -> None:
    """Shares the cores among this many batches, by default `workers`.

    Call it before TensorFlow computes anything.
    """
    if workers() > 1:
        with contextlib.suppress(RuntimeError):
            threads = max(1, cores() // (batches or workers()))
            tf.config.threading.set_intra_op_parallelism_threads(threads)


def workers() -> int:
    """Returns how many batches are computed at a time: one on a GPU, which a batch fills."""
    return 1 if tf.config.list_physical_devices("GPU") else cores()


def map_batches(
    function: Callable[[np.ndarray], Sequence], lengths: np.ndarray, sentences: int
) -> list[Any]:
    """Returns the result of each item. Batches hold items of similar length.

    Args:
        function: Maps the numbers of the items of a batch to their results. It runs in several
            threads at a time.
        lengths: Tokens of each item, `[items]`.
        sentences: Most items in a batch. There are fewer where that keeps all cores busy to the
            end.
    """
    rounds = -(-len(lengths) // (sentences * workers()))
    parts = max(1, min(rounds * workers(), -(-len(lengths) // _LEAST_SENTENCES)))
    sentences = min(sentences, -(-len(lengths) // parts))
    batches = list(cut_batches(lengths, sentences, max(_LEAST_TOKENS, TOKENS // workers())))
    found: Iterable[Sequence] = map(function, batches)
    if len(batches) > 1:  # else a thread would only cost time
        found = parallel_map(function, batches, workers())
    results = list(itertools.chain.from_iterable(found))
    places = np.argsort(np.concatenate([np.zeros(0, int), *batches]))
    return [results[place] for place in places]
