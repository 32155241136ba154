"""Costs of given translations."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, ragged, rows_of
from ..text.vocabulary import Vocabularies
from .options import DecodingOptions
from .side_by_side import map_batches


class Scorer:
    """Scores pairs of a sentence and its translation.

    Costs are divided by the length, the end included, to the power `normalization_alpha`.
    """

    def __init__(self, vocabularies: Vocabularies, model: Decodable, options: DecodingOptions):
        self._vocabularies, self._options = vocabularies, options
        ids = tf.RaggedTensorSpec([None, None], tf.int32)
        self._costs = tf.function(
            lambda source, target: model.costs(*pad(source), *pad(target)), input_signature=[ids, ids], autograph=False
        )

    def costs(self, pairs: Sequence[tuple[bytes, bytes]]) -> np.ndarray:
        """Returns the cost of each target, its end included, `[batch]`.

        The cost is the negative log-probability in nats, divided by the length to the power alpha. It is infinite if
        the pair has more than `LONGEST` tokens on a side, and NaN if the weights of the model overflow.
        """
        sources, targets = (
            rows_of(vocabulary.encode(tf.constant(side, tf.string)))
            for vocabulary, side in zip(self._vocabularies, zip(*pairs, strict=True), strict=True)
        )
        longest = np.array([max(map(len, pair)) for pair in zip(sources, targets, strict=True)])
        scored = np.flatnonzero(longest <= LONGEST)

        def score(numbers: np.ndarray) -> np.ndarray:
            sides = ([side[i] for i in scored[numbers]] for side in (sources, targets))
            found = self._costs(*map(ragged, sides)).numpy()
            return np.where(np.isfinite(found), found, np.nan)

        costs = np.full(len(pairs), np.inf)
        costs[scored] = map_batches(score, longest[scored] + 1, self._options.batch_size)
        lengths = np.array([len(target) + 1.0 for target in targets])
        return costs / lengths**self._options.normalization_alpha
