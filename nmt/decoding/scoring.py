"""Costs of given translations."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..model.contract import Decodable
from ..text.batches import LONGEST, encode_pairs, token_pieces
from ..text.vocabulary import Vocabulary


class Scorer:
    """Scores pairs of a sentence and its translation.

    Args:
        source_vocabulary: Encodes the sentences.
        target_vocabulary: Encodes their translations.
        model: Computes the costs.
        alpha: Costs are divided by the length, the end included, to the power alpha.

    Attributes:
        too_long: Number of pairs seen so far with more than `LONGEST` tokens on a side.
    """

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        model: Decodable,
        *,
        alpha: float,
    ):
        self._vocabularies, self._alpha = (source_vocabulary, target_vocabulary), alpha
        self._costs = tf.function(model.costs, reduce_retracing=True, autograph=False)
        self.too_long = 0

    def costs(self, pairs: Sequence[tuple[bytes, bytes]]) -> np.ndarray:
        """Returns the cost of each target, its end included, `[batch]`.

        The cost is the negative log-probability in nats, divided by the length to the power alpha. It is infinite if
        the pair is too long.
        """
        sides = zip(self._vocabularies, zip(*pairs, strict=True), strict=True)
        lengths = np.stack([vocabulary.encode(side).row_lengths() for vocabulary, side in sides])
        too_long = lengths.max(0) > LONGEST
        self.too_long += int(too_long.sum())
        scored = [(b"", b"") if long else pair for pair, long in zip(pairs, too_long, strict=True)]
        longest = np.where(too_long, 0, lengths.max(0)) + 1
        costs = [self._scored(scored[start:end]) for start, end in token_pieces(longest)]
        return np.where(too_long, np.inf, np.concatenate(costs))

    def _scored(self, pairs: Sequence[tuple[bytes, bytes]]) -> np.ndarray:
        batch = encode_pairs(pairs, *self._vocabularies)
        return self._costs(*batch).numpy() / tf.reduce_sum(batch.target_mask, -1).numpy() ** self._alpha
