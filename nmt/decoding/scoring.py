"""Costs of given translations."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, ragged, rows_of
from ..text.vocabulary import END, Vocabularies
from .batch_parallel import map_batches
from .options import DecodingOptions


class WordCosts(NamedTuple):
    """The score of a target, and its tokens with their costs in nats, the end included."""

    score: float
    tokens: list[str]
    costs: list[float]


class Scorer:
    """Scores pairs of a sentence and its translation.

    A score is the cost, the negative log-probability of the target with its end in nats, divided by
    the length, the end included, to the power `normalization_alpha`.
    """

    def __init__(self, vocabularies: Vocabularies, model: Decodable, options: DecodingOptions):
        self._model_costs = model.costs
        self._options = options
        source, target = vocabularies
        self._encoders = source.encode, target.ids_of_units if options.units else target.encode
        self._tokens = target.tokens
        ids = tf.RaggedTensorSpec([None, None], tf.int32)

        def word_costs(source: tf.RaggedTensor, target: tf.RaggedTensor) -> tf.Tensor:
            return model.word_costs(*pad(source), *pad(target))

        self._word_costs = tf.function(word_costs, [ids, ids], autograph=False)

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
        costs = self._model_costs(*pad(source), *pad(target))
        return costs / lengths**self._options.normalization_alpha

    def costs(self, pairs: Sequence[tuple[bytes, bytes]]) -> np.ndarray:
        """Returns the score of each pair, `[batch]`; see `costs_of_ids`."""
        return self.costs_of_ids(*self._rows(pairs))

    def word_costs(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[WordCosts]:
        """Returns the costs of the tokens of each pair; see `costs_of_ids`."""
        source, target = self._rows(pairs)
        found = []
        for ids, costs in zip(target, self._costs_of_words(source, target), strict=True):
            tokens = self._tokens(tf.constant([*ids, END])).numpy()
            tokens = [token.decode(errors="replace") for token in tokens]
            found.append(WordCosts(self._score(costs), tokens, costs.tolist()))
        return found

    def costs_of_ids(self, *sides: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the score of each pair of ids: inf if a side has more than `LONGEST`, NaN if the
        weights overflow.
        """
        return np.array([self._score(costs) for costs in self._costs_of_words(*sides)])

    def _rows(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[list[np.ndarray]]:
        sides = (tf.constant(side, tf.string) for side in zip(*pairs, strict=True))
        return list(map(rows_of, self.ids(*sides)))

    def _score(self, costs: np.ndarray) -> float:
        return float(costs.sum() / len(costs) ** self._options.normalization_alpha)

    def _costs_of_words(
        self, source: Sequence[np.ndarray], target: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        found = [np.full(len(ids) + 1, np.inf) for ids in target]
        longest = np.array([max(map(len, pair)) for pair in zip(source, target, strict=True)])
        scored = np.flatnonzero(longest <= LONGEST)

        def costs(numbers: np.ndarray) -> np.ndarray:
            pairs = [(source[i], target[i]) for i in scored[numbers]]
            costs = self._word_costs(*map(ragged, zip(*pairs, strict=True))).numpy()
            return np.where(np.isfinite(costs), costs, np.nan)

        each = map_batches(costs, longest[scored] + 1, self._options.batch_size)
        for number, row in zip(scored, each, strict=True):
            found[number] = row[: len(found[number])]
        return found
