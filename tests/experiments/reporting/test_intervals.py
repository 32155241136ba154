import numpy as np
import pytest

from experiments.reporting.intervals import (
    Interval,
    equality_power,
    holm,
    median_interval,
    signed,
    spread,
    t_interval,
    t_test,
)


def test_the_t_interval_equals_published_tables():
    """Student's t with 2 degrees of freedom is 4.303 at 97.5% and 2.920 at 95%."""
    middle, low, high = t_interval([1.0, 2.0, 3.0])
    assert (middle, low, high) == pytest.approx(
        (2, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), rel=1e-3
    )
    assert t_interval([1.0, 2.0, 3.0], 0.9).high == pytest.approx(2 + 2.920 / 3**0.5, rel=1e-3)


def test_the_t_interval_has_its_nominal_coverage():
    draws = np.random.default_rng(0).normal(1.0, 2.0, (2000, 5))
    covered = np.mean([not t_interval(list(draw)).excludes(1.0) for draw in draws])
    assert covered == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("values", [[0.5, 1.5, 1.0], [-0.2, 0.3, 0.1, 0.2], [5.0, 5.5]])
def test_the_t_test_agrees_with_the_interval(values):
    """The interval at the level 1 - p ends at 0."""
    found = t_interval(values, 1 - t_test(values))
    assert min(abs(found.low), abs(found.high)) == pytest.approx(0, abs=1e-6)


def test_the_t_test_of_equal_values():
    assert t_test([1.0, 1.0]) == 0
    assert t_test([0.0, 0.0]) == 1


@pytest.mark.parametrize(
    ("values", "count"), [([-0.8, 0.2, 1.2], 12), ([-1.0, 0.0, 1.0], 30), ([0.3, 0.4, 0.5], 3)]
)
def test_the_power_is_that_of_simulated_seeds(values, count):
    draws = np.random.default_rng(0).normal(np.mean(values), np.std(values, ddof=1), (4000, count))
    intervals = [t_interval(list(draw), 0.9) for draw in draws]
    found = np.mean([each.low >= -0.7 and each.high <= 0.7 for each in intervals])
    assert equality_power(values, count, 0.7) == pytest.approx(found, abs=0.025)


def test_the_power_of_equal_values_is_certain():
    assert equality_power([0.5, 0.5], 2, 0.5) == 1
    assert equality_power([0.6, 0.6], 2, 0.5) == 0


def test_the_median_interval_has_about_its_nominal_coverage():
    """The percentile bootstrap of 25 values is not exact."""
    draws = np.random.default_rng(0).lognormal(0.0, 1.0, (200, 25))
    covered = np.mean([not median_interval(draw).excludes(1.0) for draw in draws])
    assert covered == pytest.approx(0.95, abs=0.05)
    assert median_interval(draws[0]).middle == np.median(draws[0])


def test_holm_multiplies_the_smallest_most_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_an_interval_excludes_what_lies_outside():
    assert Interval(2.0, 1.0, 3.0).excludes(0.9)
    assert not Interval(2.0, 1.0, 3.0).excludes(1.0)


@pytest.mark.parametrize(("values", "text"), [([36.25], "36.2"), ([1.0, 2.0, 3.0], "2.0 (sd 1.0)")])
def test_spread_is_the_standard_deviation(values, text):
    assert spread(values) == text


def test_differences_have_a_sign():
    assert signed(Interval(0.5, -1.0, 2.0)) == "+0.5 [-1.0, +2.0]"
