"""Mixes corpora by weights, which say how often an epoch takes the pairs of each."""

import math
from collections.abc import Sequence

import numpy as np


class WeightedSampler:
    """Draws the pairs of each epoch.

    In an epoch, a corpus of weight w gives w times its pairs: each of them w times on average.
    Within a corpus and batch width, every pair is used once before any is repeated. Numbers of
    pairs are rounded up for each width of a batch, so every epoch has the same number of batches.

    Args:
        starts: Number of the first pair of each corpus, and of all pairs.
    """

    def __init__(self, weights: Sequence[float], starts: Sequence[int], seed: int):
        self._weights = weights
        self._starts = starts
        self._seed = seed

    def size(self, members: np.ndarray) -> int:
        """Returns how many of these pairs an epoch takes; `members` are their numbers, in order."""
        return sum(_times(weight, len(part)) for weight, part in self._parts(members))

    def draw(self, members: np.ndarray, epoch: int, width: int) -> np.ndarray:
        """Returns the pairs of an epoch.

        It depends on the arguments, the seed and the weights alone.
        """
        drawn = [
            self._of_corpus(part, _times(weight, len(part)), epoch, (width, corpus))
            for corpus, (weight, part) in enumerate(self._parts(members))
            if len(part)
        ]
        return np.concatenate(drawn)

    def _parts(self, members: np.ndarray) -> list[tuple[float, np.ndarray]]:
        return list(
            zip(
                self._weights,
                np.split(members, np.searchsorted(members, self._starts[1:-1])),
                strict=True,
            )
        )

    def _of_corpus(
        self, part: np.ndarray, count: int, epoch: int, place: tuple[int, int]
    ) -> np.ndarray:
        """Returns this epoch's section of an endless sequence of shuffled passes over a corpus."""
        first = epoch * count
        passes = range(first // len(part), -(-(first + count) // len(part)))
        shuffled = [
            np.random.default_rng([self._seed, each, *place]).permutation(part) for each in passes
        ]
        begin = first - passes.start * len(part)
        return np.concatenate(shuffled)[begin : begin + count]


def _times(weight: float, count: int) -> int:
    """Returns the product, rounded up, and at least 1 unless the count is 0; 0.1 times 30 is 3."""
    return max(min(1, count), math.ceil(round(weight * count, 6)))
