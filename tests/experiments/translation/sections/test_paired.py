"""Paired differences and what they show, with intervals worked out by hand."""

import pytest

from experiments.translation.sections import paired


def test_seeds_of_both_rows_are_paired(results):
    one, other = results[:1], results[1:2]
    other[0].log["tests"] = {}
    assert one[0].seed == other[0].seed
    assert paired.gains_of(one, other) == [one[0].dev - other[0].dev]
    assert paired.gains_of(one, other, lambda result: 3.0) == [0.0]
    assert paired.gains_of(one, []) == []


@pytest.mark.parametrize(
    ("gains", "interval", "verdict"),
    [
        ([0.0, 0.1, 0.2], "+0.1 [-0.1, +0.3]", "no difference"),  # 0.1 plus or minus 4.303 * 0.1 / sqrt(3)
        ([0.9, 1.0, 1.1], "+1.0 [+0.8, +1.2]", "better"),
        ([-0.9, -1.0, -1.1], "-1.0 [-1.2, -0.8]", "worse"),
        ([-1.0, 0.0, 1.0], "+0.0 [-2.5, +2.5]", "not shown by 3 seeds"),
        ([9.0], "+9.0 (1 seed)", "not shown by 1 seed"),
    ],
)
def test_what_differences_show(gains, interval, verdict):
    assert paired.told(gains) == interval
    assert paired.shown(gains) == verdict


def test_a_significant_difference_within_the_margin_counts_as_none():
    gains = [0.19, 0.2, 0.21]
    assert paired.differs(gains)
    assert paired.shown(gains) == "no difference"


def test_the_interval_of_equality_holds_90_percent():
    assert paired.narrow([0.0, 0.1, 0.2]) == "[-0.07, +0.27]"  # 0.1 plus or minus 2.920 * 0.1 / sqrt(3)
    assert not paired.narrow([0.1])
    assert not paired.told([])
