"""Corpora mixed by weights: every pair as often as its corpus weighs, in an order that seed and
epoch decide.
"""

import collections

import numpy as np
import pytest

from nmt.text.mixing import WeightedSampler

MEMBERS = np.arange(2, 50, 2)  # 9 of a corpus of 20 pairs, none of one of no pairs, 15 of one of 30
STARTS = [0, 20, 20, 50]


def drawn(sampler, epochs):
    return collections.Counter(
        pair for epoch in epochs for pair in sampler.draw(MEMBERS, epoch, 8).tolist()
    )


@pytest.mark.parametrize(("weight", "epochs"), [(1, 1), (3, 2), (2.4, 5), (0.2, 5), (0.4, 5)])
def test_each_pair_comes_as_often_as_its_corpus_weighs(weight, epochs):
    sampler = WeightedSampler([1, 1, weight], STARTS, seed=3)
    counts = drawn(sampler, range(2 * epochs, 3 * epochs))
    assert {counts[pair] for pair in MEMBERS if pair < 20} == {epochs}
    assert {counts[pair] for pair in MEMBERS if pair >= 20} == {round(weight * epochs)}
    assert sampler.size(MEMBERS) == len(sampler.draw(MEMBERS, 0, 8)) == 9 + 15 * weight


def test_small_parts_are_rounded_up_and_all_pairs_come():
    sampler = WeightedSampler([0.01, 1, 0.01], STARTS, seed=3)
    assert sampler.size(MEMBERS) == 2
    assert drawn(sampler, range(15)).keys() == set(MEMBERS.tolist())


def test_passes_over_a_corpus_have_orders_of_their_own():
    """Of a weight of 1, an epoch is a pass."""
    sampler = WeightedSampler([1, 1, 1], STARTS, seed=3)
    assert len({tuple(sampler.draw(MEMBERS, epoch, 8)[9:]) for epoch in range(4)}) == 4
    thrice = WeightedSampler([1, 1, 3], STARTS, seed=3).draw(MEMBERS, 0, 8)[9:].reshape(3, 15)
    assert len({tuple(each) for each in thrice}) == 3


@pytest.mark.parametrize(
    ("weight", "taken"), [(0.1, 2), (0.2, 3), (0.21, 4), (0.0667, 2), (1 / 15, 1)]
)
def test_the_number_of_pairs_is_rounded_up(weight, taken):
    """Of a corpus of 15; what is a whole number but for the rounding of its factors stays."""
    assert WeightedSampler([1, 1, weight], STARTS, seed=3).size(MEMBERS) == 9 + taken


def test_a_product_is_not_rounded_up_for_its_rounding_error():
    """0.07 times 100 is more than 7 in floating point."""
    assert WeightedSampler([0.07], [0, 100], seed=3).size(np.arange(100)) == 7


def test_a_corpus_of_very_small_weight_still_has_a_pair():
    sampler = WeightedSampler([1e-9, 1e-9, 1e-9], STARTS, seed=3)
    assert sampler.size(MEMBERS) == len(sampler.draw(MEMBERS, 0, 8)) > 0
    assert sampler.size(MEMBERS[:0]) == 0


def test_an_epoch_depends_on_seed_and_number_alone():
    def draw(epoch, seed=1, width=8):
        return WeightedSampler([0.5, 1, 1.5], STARTS, seed).draw(MEMBERS, epoch, width).tolist()

    assert draw(4) == draw(4)
    assert (
        len({tuple(each) for each in (draw(4), draw(5), draw(4, seed=2), draw(4, width=12))}) == 4
    )
