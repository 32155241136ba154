"""Judges the claims of all reports by one rule.

It has differences paired by seed, their intervals, Holm's correction, and verdicts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .intervals import Interval, equality_test, exceeds_test, holm, signed, t_interval, t_test
from .section import Claim

LEVEL = 0.05
RULE = (
    "A difference is paired by seed: the mean over the seeds, with Student's t interval. Two "
    "kinds are equal if the 90% interval lies within the margin, and one is not worse than "
    "another if its end on that side does. Otherwise a difference is shown if 0 lies outside the "
    "95% interval. A verdict needs a p of at most 0.05, corrected by Holm's method for the claims "
    "of the report that are judged together, those on equality too."
)
_DIRECTIONS = ("lower", "higher")


@dataclass(frozen=True)
class Hypothesis:
    """A claim about two kinds."""

    one: str  # name of a condition
    other: str  # name of the condition that it is compared with
    # what the claim says of the value of `one` minus that of `other`: `lower`, `higher`, `equal`,
    # within the margin, `not lower` or `not higher`, each than 0 by the margin. `lower` and
    # `higher` need none; with one, the claim is of a difference larger than it
    outcome: str
    claim: str  # the claim in words
    paper: str = "not in the paper"  # what the paper has
    margin: float = 0.0
    planned: int = 2  # the number of seeds that was planned. With fewer, nothing is judged
    family: str = ""  # claims of one family are corrected together
    setting: str = ""  # name of the only setting that it is about; by default all
    measure: str = (
        ""  # name of the compared value, where a report has several; by default its main one
    )
    note: str = ""  # what to know of what was compared, in words; it follows the verdict


@dataclass(frozen=True, kw_only=True)
class Question(Hypothesis):
    """A claim with the differences that judge it."""

    pair: str  # names the difference: "RMSNorm minus LayerNorm"
    differences: Sequence[float]  # of each seed; NaN if a training diverged
    unit: (
        str  # the unit and the measure, as they follow a number: " BLEU", "% in mean training loss"
    )
    digits: int = 1  # decimals

    @property
    def diverged(self) -> bool:
        """Whether a training has no value."""
        return not all(map(math.isfinite, self.differences))

    @property
    def waits(self) -> bool:
        """Whether planned seeds are not done."""
        return len(self.differences) < max(2, self.planned)

    @property
    def whole(self) -> bool:
        """Whether all planned seeds have a value."""
        return not (self.waits or self.diverged)

    @property
    def bound(self) -> float | None:
        """The value that the mean must be above or below; `None` for other claims."""
        if self.outcome == "equal" or self.two_sided:
            return None
        return self.margin if self.outcome in ("higher", "not higher") else -self.margin

    @property
    def two_sided(self) -> bool:
        """Whether the claim is of a difference of any size."""
        return self.outcome in _DIRECTIONS and not self.margin

    @property
    def p(self) -> float:
        """The p-value against the claim; two-sided for a claim of a difference of any size."""
        if self.two_sided:
            return t_test(self.differences)
        if self.bound is None:
            return equality_test(self.differences, self.margin)
        sign = 1 if self.outcome in ("higher", "not lower") else -1
        return exceeds_test([sign * each for each in self.differences], sign * self.bound)


class Judged(NamedTuple):
    """A question with its p-value after Holm's correction, or `None` if it is not judged yet."""

    question: Question
    p: float | None
    provisional: bool = False  # whether other claims of the family wait for their seeds

    @property
    def interval(self) -> Interval | None:
        """The mean difference with its 95% interval."""
        return t_interval(self.question.differences) if self.p is not None else None

    @property
    def direction(self) -> str:
        """`lower` or `higher` if 0 lies outside the 95% interval, otherwise an empty string."""
        if not (self.interval and self.interval.excludes(0)):
            return ""
        return "lower" if self.interval.middle < 0 else "higher"

    @property
    def ours(self) -> str:
        """The difference in words."""
        asked = self.question
        count = f"{len(asked.differences)} seed{'s' * (len(asked.differences) != 1)}"
        if self.interval is None:
            return (
                f"a training diverged, {count}"
                if asked.diverged
                else f"{count} of {max(2, asked.planned)}"
            )
        return f"{signed(self.interval, asked.digits)}{asked.unit}, {count}"

    @property
    def verdict(self) -> str:
        """The verdict on the claim, with the 90% interval where a margin judges, and the note."""
        asked = self.question
        if self.p is None:
            return "not shown" if asked.diverged else "not judged before all seeds are there"
        verdict = "; ".join(filter(None, (self._judgement(), asked.note)))
        return f"provisional: {verdict}" if self.provisional else verdict

    def _judgement(self) -> str:
        asked = self.question
        shown = self.p <= LEVEL
        if asked.two_sided:
            if shown:
                return (
                    "shown"
                    if self.direction == asked.outcome
                    else f"the opposite: {self.direction}"
                )
            return "not shown" + " after Holm's correction" * bool(self.direction)
        margin = f"{asked.margin:.{asked.digits + 1}f}".rstrip("0").rstrip(".")
        inside = asked.p <= LEVEL
        sign = "±" if asked.bound is None else f"{asked.bound:+}"[0]
        place = f"90% interval {self._narrow()}, margin {sign}{margin}"
        also = f"; {self.direction}" if self.direction else ""
        corrected = " after Holm's correction" if inside and not shown else ""
        return f"{'shown' if shown else 'not shown'}{corrected}: {place}{also}"

    def _narrow(self) -> str:
        """Returns the 90% interval, with a digit more than the difference."""
        _, _, brackets = signed(
            t_interval(self.question.differences, 0.9), self.question.digits + 1
        ).partition(" ")
        return brackets

    @property
    def claim(self) -> Claim:
        return Claim(self.question.claim, self.question.paper, self.ours, self.verdict)

    @property
    def cells(self) -> list[str]:
        asked = self.question
        cells = [f"{asked.pair},{asked.unit}", asked.outcome, str(len(asked.differences))]
        if self.interval is None:
            return [*cells, *[""] * 5]
        each = ", ".join(f"{value:+.{asked.digits + 1}f}" for value in asked.differences)
        return [
            *cells,
            each,
            signed(self.interval, asked.digits + 1),
            self._narrow(),
            _p(asked.p),
            _p(self.p),
        ]


COLUMNS = (
    "",
    "asked",
    "seeds",
    "each seed",
    "mean [95% interval]",
    "90% interval",
    "p",
    "Holm's p",
)


def paired(
    one: Mapping[int, Any],
    other: Mapping[int, Any],
    value: Callable[[Any], float],
    relative: bool = False,
) -> list[float]:
    """Returns the difference of a value for each seed that both conditions have.

    It is NaN if one of the two diverged.

    Args:
        one: The results of a condition by their seeds.
        other: Those of the condition that it is compared with.
        value: Reads the value from a result.
        relative: Give differences in percent.
    """

    def difference(a: float, b: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return math.nan
        return 100 * (a / b - 1) if relative else a - b

    return [
        difference(value(one[seed]), value(other[seed]))
        for seed in sorted(one.keys() & other.keys())
    ]


def judge(questions: Sequence[Question]) -> list[Judged]:
    """Returns every question with its p-value, corrected for all questions of its family.

    A question that is not whole counts with a p-value of 1.
    """
    found: dict[int, Judged] = {}
    for family in dict.fromkeys(each.family for each in questions):
        numbers = [at for at, each in enumerate(questions) if each.family == family]
        asked = [questions[at] for at in numbers]
        waiting = any(each.waits for each in asked)
        corrected = holm([each.p if each.whole else 1.0 for each in asked])
        for at, question, p in zip(numbers, asked, corrected, strict=True):
            found[at] = Judged(question, p, waiting) if question.whole else Judged(question, None)
    return [found[at] for at in range(len(questions))]


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
