"""Confidence intervals and the correction of p-values."""

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
from scipy import stats

RESAMPLES = 10_000


class Interval(NamedTuple):
    """An estimate and the interval around it."""

    middle: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        return not self.low <= value <= self.high


def t_quantile(level: float, count: int) -> float:
    """Returns the factor of the standard error in the t interval of this many values.

    >>> round(t_quantile(0.95, 3), 3)
    4.303
    """
    return float(stats.t.ppf((1 + level) / 2, count - 1))


def t_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Returns the mean of two or more values with its Student t interval.

    >>> [round(each, 2) for each in t_interval([1.0, 2.0, 3.0])]
    [2.0, -0.48, 4.48]
    """
    half = t_quantile(level, len(values)) * stdev(values) / len(values) ** 0.5
    return Interval(mean(values), mean(values) - half, mean(values) + half)


def t_test(values: Sequence[float]) -> float:
    """Returns the two-sided p-value of Student's t test that the mean of two or more values is 0.

    >>> round(t_test([1.0, 2.0, 3.0]), 3)
    0.074
    """
    if stdev(values) == 0:
        return float(mean(values) == 0)
    return float(stats.ttest_1samp(values, 0).pvalue)


def exceeds_test(values: Sequence[float], bound: float) -> float:
    """Returns the one-sided p-value of a t test that the mean is above a bound.

    There are two or more values.

    >>> round(exceeds_test([1.0, 2.0, 3.0], 0.5), 3)
    0.061
    """
    if stdev(values) == 0:
        return float(mean(values) <= bound)
    return float(stats.ttest_1samp(values, bound, alternative="greater").pvalue)


def equality_test(values: Sequence[float], margin: float) -> float:
    """Returns the p-value of two one-sided t tests that the mean is within the margin.

    There are two or more values. It is at most 0.05 if the 90% t interval lies between them.

    >>> round(equality_test([-0.1, 0.0, 0.1], 0.5), 3)
    0.007
    """
    return max(exceeds_test(values, -margin), exceeds_test([-each for each in values], -margin))


def equality_power(values: Sequence[float], count: int, margin: float) -> float:
    """Returns how likely the 90% t interval of some values lies within the margin.

    Args:
        values: Two or more values. New ones are drawn from a normal distribution with their mean
            and deviation.
        count: The number of new values, at least two.
        margin: The margin.

    >>> [round(equality_power([-1.0, 0.0, 1.0], count, 0.5), 2) for count in (13, 36)]
    [0.13, 0.81]
    """
    error = stdev(values) / count**0.5
    if error == 0:
        return float(abs(mean(values)) <= margin)
    # Equally likely deviations of the new values.
    found = stats.chi2.ppf((np.arange(1000) + 0.5) / 1000, count - 1)
    room = margin - t_quantile(0.9, count) * error * np.sqrt(found / (count - 1))
    inside = stats.norm.cdf((room - mean(values)) / error) - stats.norm.cdf(
        (-room - mean(values)) / error
    )
    return float(np.mean(np.maximum(inside, 0)))


def median_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Returns the median of some values with its percentile bootstrap interval.

    >>> median_interval([1.0, 1.0, 1.0])
    Interval(middle=1.0, low=1.0, high=1.0)
    """
    resampled = np.random.default_rng(0).choice(np.asarray(values), (RESAMPLES, len(values)))
    low, high = np.quantile(np.median(resampled, 1), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.median(values)), float(low), float(high))


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted for multiple comparisons by Holm's method, in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    Reference: Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Returns a mean as text, with the standard deviation of two or more values.

    >>> spread([1.0, 2.0, 3.0])
    '2.0 (sd 1.0)'
    >>> spread([1.0, float("nan")])
    '1 of 2 diverged'
    """
    diverged = len(values) - sum(map(math.isfinite, values))
    if diverged:
        return f"{diverged} of {len(values)} diverged"
    deviation = f" (sd {stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def signed(interval: Interval, digits: int = 1) -> str:
    """Returns an interval of differences as text.

    >>> signed(Interval(0.5, -1.0, 2.0))
    '+0.5 [-1.0, +2.0]'
    """
    middle, low, high = (f"{each:+.{digits}f}" for each in interval)
    return f"{middle} [{low}, {high}]"
