"""Costs of given translations."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, ragged, rows_of
from ..text.vocabulary import Vocabularies
from .batch_parallel import map_batches
from .options import DecodingOptions


class Scorer:
    """Scores pairs of a sentence and its translation.

    A score is the cost, the negative log-probability of the target with its end in nats, divided by
    the length, the end included, to the power `normalization_alpha`.
    """

    def __init__(self, vocabularies: Vocabularies, model: Decodable, options: DecodingOptions):
        self._model_costs = model.costs
        self._options = options
        target = vocabularies.target
        self._encoders = (
            vocabularies.source.encode,
            target.ids_of_units if options.units else target.encode,
        )
        ids = tf.RaggedTensorSpec([None, None], tf.int32)
        self._traced = tf.function(lambda *sides: self.scores(*sides), [ids, ids], autograph=False)

    def ids(self, sources: tf.Tensor, targets: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Returns the ids `[batch, (tokens)]` of strings `[batch]`, without the ends."""
        return tuple(
            encode(side) for encode, side in zip(self._encoders, (sources, targets), strict=True)
        )

    def scores(self, source: tf.RaggedTensor, target: tf.RaggedTensor) -> tf.Tensor:
        """Returns the score of each target, `[batch]`.

        Both are ids `[batch, (tokens)]`, at most `LONGEST`.
        """
        lengths = tf.cast(target.row_lengths() + 1, tf.float32)
        return (
            self._model_costs(*pad(source), *pad(target))
            / lengths**self._options.normalization_alpha
        )

    def costs(self, pairs: Sequence[tuple[bytes, bytes]]) -> np.ndarray:
        """Returns the score of each pair, `[batch]`; see `costs_of_ids`."""
        ids = self.ids(*(tf.constant(side, tf.string) for side in zip(*pairs, strict=True)))
        return self.costs_of_ids(*map(rows_of, ids))

    def costs_of_ids(self, *sides: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the score of each pair of ids: inf if a side has more than `LONGEST`, NaN if the weights overflow."""
        longest = np.array([max(map(len, pair)) for pair in zip(*sides, strict=True)])
        scored = np.flatnonzero(longest <= LONGEST)

        def score(numbers: np.ndarray) -> np.ndarray:
            found = self._traced(
                *(ragged([side[i] for i in scored[numbers]]) for side in sides)
            ).numpy()
            return np.where(np.isfinite(found), found, np.nan)

        costs = np.full(len(longest), np.inf)
        costs[scored] = map_batches(score, longest[scored] + 1, self._options.batch_size)
        return costs
