"""Costs of given translations, some of them too long."""

import numpy as np
import tensorflow as tf

from nmt.decoding.batch_parallel import workers
from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.text.batches import LONGEST, TOKENS
from nmt.text.vocabulary import Vocabularies
from tests.nmt.pairs import encode_pairs

PAIRS = [
    (b"a b", b"c"),
    (b"a " * (LONGEST + 1), b"b"),
    (b"", b""),
    (b"a", b"b " * (LONGEST + 1)),
    (b"d", b"d c a"),
]
RAW = DecodingOptions(normalization_alpha=0.0)


def test_costs_are_those_of_the_model_divided_by_the_length(make_model, vocabulary, eagerly):
    """Those of words end with that of the end.

    A pair that is too long costs infinitely much and changes nothing for the others.
    """
    model = make_model()
    scorer = Scorer(Vocabularies(vocabulary, vocabulary), model, DecodingOptions())
    found = scorer.token_costs(PAIRS)
    np.testing.assert_allclose([each.score for each in found], scorer.scores_of(PAIRS))
    assert [each.tokens for each in found][::2] == [["c", "eos"], ["eos"], ["d", "c", "a", "eos"]]
    for pair, each in list(zip(PAIRS, found, strict=True))[::2]:
        batch = encode_pairs([pair], vocabulary, vocabulary)
        expected = tf.nn.log_softmax(model(*batch[:3]))[0].numpy()[
            range(len(each.costs)), batch[2][0]
        ]
        np.testing.assert_allclose(each.costs, -expected, rtol=1e-5)
        np.testing.assert_allclose(each.score, -expected.mean(), rtol=1e-5)
    assert all(np.isinf(found[i].costs).all() for i in (1, 3))


def test_a_pair_of_the_greatest_length_is_scored(make_model, vocabulary):
    scorer = Scorer(Vocabularies(vocabulary, vocabulary), make_model("none"), RAW)
    assert np.isfinite(scorer.scores_of([(b"a " * LONGEST, b"b")])).all()


class Overflowing:
    """A model whose weights overflow."""

    costs = None

    def word_costs(self, source, source_mask, target, target_mask):
        return tf.fill(tf.shape(target), float("inf"))


def test_a_pair_without_a_finite_cost_is_not_taken_for_one_that_is_too_long(vocabulary):
    costs = Scorer(Vocabularies(vocabulary, vocabulary), Overflowing(), RAW).scores_of(PAIRS)
    np.testing.assert_array_equal(costs, [np.nan, np.inf, np.nan, np.inf, np.nan])


class Widths:
    """A model whose cost of a pair is its number of target words; it notes the sizes of its
    batches.
    """

    def __init__(self):
        self.sizes = []

    costs = None

    def word_costs(self, source, source_mask, target, target_mask):
        self.sizes.append(
            tf.numpy_function(self.seen, [tf.shape(source), tf.shape(target)], tf.int32)
        )
        return target_mask + 0.0 * tf.cast(self.sizes[-1], tf.float32)

    def seen(self, source, target):
        self.found = [*getattr(self, "found", []), int(source[0] * max(source[1], target[1]))]
        return np.int32(0)


def test_long_pairs_are_scored_in_pieces_of_few_tokens(vocabulary):
    model = Widths()
    pairs = [(b"a", b"b " * (100 * i)) for i in range(10)] * 4
    costs = Scorer(Vocabularies(vocabulary, vocabulary), model, RAW).scores_of(pairs)
    assert costs.tolist() == [100 * i + 1 for i in range(10)] * 4
    assert len(model.found) > 1
    # As many batches at a time as there are cores.
    assert max(model.found) <= TOKENS // min(workers(), 4)
