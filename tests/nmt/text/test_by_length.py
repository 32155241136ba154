"""Batches of similar length, in the original order."""

import numpy as np

from nmt.text.by_length import chunked, map_by_length


def test_map_by_length_keeps_the_order_and_groups_by_length():
    rng = np.random.default_rng(0)
    lines = ["x" * length for length in rng.integers(0, 50, 999)]
    seen = []

    def function(batch):
        seen.append([len(line) for line in batch])
        return [f"{line}!" for line in batch]

    assert list(map_by_length(function, chunked(lines, 200), 10)) == [f"{line}!" for line in lines]
    assert max(map(len, seen)) == 10
    assert np.mean([max(lengths) - min(lengths) for lengths in seen]) < 5
