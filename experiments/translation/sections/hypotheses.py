"""The claims that are judged by differences between two rows, paired by seed, and their verdicts."""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from ...reporting.intervals import Interval, holm, t_interval, t_test
from ..published import RESULTS
from ..results import Result
from .paired import MARGIN, equal, first_test, narrow
from .verdicts import not_shown

LEVEL = 0.05


class Hypothesis(NamedTuple):
    """A claim about two rows.

    Args:
        one: The name of a row.
        other: The name of another.
        outcome: How the first row compares with the second: `equal`, within the margin; `better`; or `different`.
        measure: `test` (BLEU on the first test set), `dev` (best BLEU on the dev set), or `loss` (last training loss).
    """

    one: str
    other: str
    outcome: str
    measure: str = "test"

    @property
    def published(self) -> bool:
        """Whether Table 2 or 4 of the paper has both rows."""
        return {self.one, self.other} <= RESULTS.keys() and self.measure == "test"


class Paired(NamedTuple):
    """A claim with the results of the seeds that both rows have."""

    hypothesis: Hypothesis
    pairs: Sequence[tuple[Result, Result]]
    gains: Sequence[float]  # how much better the first row is, by seed
    p: float | None = None  # Holm's, for two seeds or more

    @property
    def labels(self) -> tuple[str, str]:
        """The labels of the two rows."""
        one, other = self.pairs[0]
        return one.row.label, other.row.label

    @property
    def interval(self) -> Interval | None:
        """The mean difference with its 95% interval, for two seeds or more."""
        return t_interval(self.gains) if len(self.gains) > 1 else None

    @property
    def equal(self) -> bool:
        """Whether the rows are equal within the margin, which is one of BLEU."""
        return self.hypothesis.measure != "loss" and equal(self.gains)

    @property
    def direction(self) -> str:
        """`better` or `worse` if Holm's p shows a difference, otherwise an empty string."""
        if self.p is None or self.p > LEVEL:
            return ""
        return "better" if mean(self.gains) > 0 else "worse"

    @property
    def shown(self) -> str:
        """What the seeds show: `equal`, `better`, `worse`, or `neither`."""
        return "equal" if self.equal else self.direction or "neither"

    @property
    def verdict(self) -> str:
        """The verdict on the claim."""
        outcome, direction = self.hypothesis.outcome, self.direction
        if outcome == "equal":
            if self.equal:
                return f"borne out: {_narrow(self.gains)} within ±{MARGIN} BLEU"
            if direction:
                return f"not borne out: {direction}"
            return f"not shown: {_narrow(self.gains)} not within ±{MARGIN} BLEU" if self.interval else not_shown(1)
        if direction:
            return "borne out" if outcome in (direction, "different") else f"the opposite: {direction}"
        if self.equal:
            return "not borne out: equal"
        after = " after Holm's correction" if self.interval and self.interval.excludes(0) else ""
        return not_shown(len(self.gains)) + after

    def gains_on(self, test: str) -> list[float]:
        """Returns the differences on another test set."""
        return [one.test(test) - other.test(test) for one, other in self.pairs]


def _narrow(gains: Sequence[float]) -> str:
    return f"90% interval {narrow(gains)}"


HYPOTHESES = (
    # Tables 2 and 4
    Hypothesis("rmsnorm", "layernorm", "equal"),
    Hypothesis("prmsnorm", "layernorm", "equal"),
    Hypothesis("layernorm", "baseline", "better"),
    Hypothesis("rmsnorm", "baseline", "better"),
    Hypothesis("rmsnorm-recipe", "layernorm-recipe", "equal"),
    Hypothesis("layernorm-recipe", "none-recipe", "better"),
    Hypothesis("rmsnorm-recipe", "none-recipe", "better"),
    Hypothesis("rmsnorm", "l2norm", "better"),
    Hypothesis("rmsnorm", "l2norm-scaled", "equal"),
    Hypothesis("post-rmsnorm", "post-layernorm", "equal"),
    Hypothesis("post-prmsnorm", "post-layernorm", "equal"),
    Hypothesis("post-rmsnorm-longer", "post-layernorm-longer", "equal"),
    Hypothesis("pre-rmsnorm", "pre-layernorm", "equal"),
    # Figure 1
    Hypothesis("layernorm-recipe", "none-recipe", "better", "loss"),
    # Figure 4, and Table 1 in training
    Hypothesis("rmsnorm-centre", "layernorm-centre", "better", "dev"),
    *(
        Hypothesis(f"{kind}-{centre}-matrices", kind, outcome, "dev")
        for centre in ("centre", "centre-0.02")
        for kind, outcome in (("layernorm", "equal"), ("rmsnorm", "different"))
    ),
)


def compare(results: Sequence[Result]) -> list[Paired]:
    """Returns every claim whose rows share a seed. Their p-values are adjusted for the number of all."""
    done = {(each.row.name, each.seed): each for each in results}
    found = []
    for hypothesis in HYPOTHESES:
        shared = sorted(seed for name, seed in done if name == hypothesis.one and (hypothesis.other, seed) in done)
        pairs = [(done[hypothesis.one, seed], done[hypothesis.other, seed]) for seed in shared]
        gains = [_gain(hypothesis.measure, *pair) for pair in pairs]
        if pairs and None not in gains:
            found.append(Paired(hypothesis, pairs, gains))
    adjusted = iter(holm([t_test(each.gains) for each in found if each.interval]))
    return [each._replace(p=next(adjusted)) if each.interval else each for each in found]


def _gain(measure: str, one: Result, other: Result) -> float | None:
    """Returns how much better the first result is, or `None` if a log lacks the measure."""
    if measure == "loss":
        losses = [each.log["validations"][-1].get("train_loss") for each in (one, other)]
        return None if None in losses else losses[1] - losses[0]
    if measure == "dev":
        return one.dev - other.dev
    test = first_test([one])
    return one.test(test) - other.test(test)
