"""Batches of items of similar length, computed side by side, with the results in the original
order.
"""

import threading

import numpy as np
import pytest

from nmt.decoding.batch_parallel import map_batches, workers


def test_results_are_in_order_and_batches_hold_similar_lengths():
    lengths = np.random.default_rng(0).integers(1, 50, 999)
    seen = []

    def function(numbers):
        seen.append(lengths[numbers])
        return [f"{number}!" for number in numbers]

    assert map_batches(function, lengths, 10) == [f"{number}!" for number in range(999)]
    assert max(map(len, seen)) == 10
    assert np.mean([max(each) - min(each) for each in seen]) < 5


@pytest.mark.skipif(workers() > 16, reason="few items for many cores")
@pytest.mark.parametrize("items", [1, 9, 17, 31, 33, 100, 1000])
def test_batches_are_of_about_equal_size_and_keep_all_cores_busy_to_the_end(items):
    seen = []
    map_batches(lambda numbers: seen.append(len(numbers)) or numbers, np.ones(items), 80)
    assert sum(seen) == items
    assert max(seen) <= 80
    assert min(seen) >= min(items, 8)  # none is tiny
    assert max(seen) - min(seen) < 20
    if items >= 16 * workers():
        assert len(seen) % workers() == 0


@pytest.mark.skipif(workers() < 2, reason="needs two cores")
def test_batches_are_computed_at_the_same_time():
    """Each of the first two waits until the other has begun."""
    both = threading.Barrier(2, timeout=30)

    def function(numbers):
        if numbers[0] < 2:
            both.wait()
        return numbers

    assert map_batches(function, np.array([9, 9, 1]), 1) == [0, 1, 2]
