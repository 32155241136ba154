"""Differences between the BLEU of two rows, paired by seed, and what they show."""

from collections.abc import Callable, Sequence

from ...reporting.intervals import Interval, signed, t_interval
from ..results import Result
from .verdicts import not_shown

MARGIN = 0.5  # BLEU; two rows count as equal if the 90% interval of their difference lies within
RULE = f"the 90% interval of their difference lies between -{MARGIN} and +{MARGIN} BLEU"


def gains_of(
    one: Sequence[Result], other: Sequence[Result], score: Callable[[Result], float] = lambda result: result.dev
) -> list[float]:
    """Returns the score of one row less that of another, for the seeds that both have. The default is dev BLEU."""
    found = {result.seed: score(result) for result in other}
    return [score(result) - found[result.seed] for result in one if result.seed in found]


def first_test(results: Sequence[Result]) -> str:
    """Returns the name of the test set that verdicts are about."""
    return next(iter(results[0].log["tests"]))


def told(gains: Sequence[float], digits: int = 1) -> str:
    """Returns the mean difference with its 95% interval as text, or the difference of a single seed."""
    if not gains:
        return ""
    return signed(t_interval(gains), digits) if len(gains) > 1 else f"{gains[0]:+.{digits}f} (1 seed)"


def narrow(gains: Sequence[float]) -> str:
    """Returns the 90% interval as text, or nothing for a single seed."""
    if len(gains) < 2:
        return ""
    _, low, high = t_interval(gains, 0.9)
    return f"[{low:+.2f}, {high:+.2f}]"


def equal(gains: Sequence[float]) -> bool:
    """Returns whether the differences show that two rows are equal within the margin."""
    return len(gains) > 1 and t_interval(gains, 0.9).within(MARGIN)


def differs(gains: Sequence[float]) -> Interval | None:
    """Returns the 95% interval if it excludes 0."""
    found = t_interval(gains) if len(gains) > 1 else None
    return found if found and found.excludes(0) else None


def shown(gains: Sequence[float]) -> str:
    """Returns what the differences show about a row: `no difference`, `better`, `worse`, or that they show nothing."""
    if equal(gains):
        return "no difference"
    if found := differs(gains):
        return "better" if found.low > 0 else "worse"
    return not_shown(len(gains))
