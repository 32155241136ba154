"""The claims that are judged by differences between two rows, paired by seed, and their verdicts."""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from ...reporting.intervals import Interval, holm, t_interval, t_test
from ..published import RESULTS
from ..results import Result
from .paired import equal, first_test, unequal
from .verdicts import not_shown

LEVEL = 0.05


class Hypothesis(NamedTuple):
    """A claim about two rows.

    Args:
        one: The name of a row.
        other: The name of another.
        equal: The claim is that they are equal within the margin. Otherwise it is that `one` is better.
        measure: `test` (BLEU on the first test set), `dev` (best BLEU on the dev set), or `loss` (last training loss).
    """

    one: str
    other: str
    equal: bool = False
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
    p: float | None = None  # Holm's, of a claim that one row is better, for two seeds or more

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
    def shown(self) -> str:
        """What the seeds show: `equal`, `better`, `worse`, or `neither`."""
        different = unequal(self.gains) if self.hypothesis.equal else self.p is not None and self.p <= LEVEL
        if different:
            return "better" if mean(self.gains) > 0 else "worse"
        return "equal" if self.hypothesis.measure != "loss" and equal(self.gains) else "neither"

    @property
    def verdict(self) -> str:
        """The verdict on the claim."""
        if self.shown == "neither":
            return not_shown(len(self.gains))
        if self.shown == ("equal" if self.hypothesis.equal else "better"):
            return "borne out"
        return f"not borne out: {self.shown}"

    def gains_on(self, test: str) -> list[float]:
        """Returns the differences on another test set."""
        return [one.test(test) - other.test(test) for one, other in self.pairs]


HYPOTHESES = (
    # Tables 2 and 4
    Hypothesis("rmsnorm", "layernorm", equal=True),
    Hypothesis("prmsnorm", "layernorm", equal=True),
    Hypothesis("layernorm", "baseline"),
    Hypothesis("rmsnorm", "baseline"),
    Hypothesis("rmsnorm-recipe", "layernorm-recipe", equal=True),
    Hypothesis("layernorm-recipe", "none-recipe"),
    Hypothesis("rmsnorm-recipe", "none-recipe"),
    Hypothesis("rmsnorm", "l2norm"),
    Hypothesis("rmsnorm", "l2norm-scaled", equal=True),
    Hypothesis("post-rmsnorm", "post-layernorm", equal=True),
    Hypothesis("post-prmsnorm", "post-layernorm", equal=True),
    Hypothesis("post-rmsnorm-longer", "post-layernorm-longer", equal=True),
    Hypothesis("pre-rmsnorm", "pre-layernorm", equal=True),
    # Figure 1
    Hypothesis("layernorm-recipe", "none-recipe", measure="loss"),
    # Figure 4, and Table 1 in training
    Hypothesis("rmsnorm-centre", "layernorm-centre", measure="dev"),
    *(
        hypothesis
        for centre in ("centre", "centre-0.02")
        for hypothesis in (
            Hypothesis(f"layernorm-{centre}-matrices", "layernorm", equal=True, measure="dev"),
            Hypothesis("rmsnorm", f"rmsnorm-{centre}-matrices", measure="dev"),
        )
    ),
)


def compare(results: Sequence[Result]) -> list[Paired]:
    """Returns every claim whose rows share a seed. Claims that one row is better are adjusted for their number."""
    done = {(each.row.name, each.seed): each for each in results}
    found = []
    for hypothesis in HYPOTHESES:
        shared = sorted(seed for name, seed in done if name == hypothesis.one and (hypothesis.other, seed) in done)
        pairs = [(done[hypothesis.one, seed], done[hypothesis.other, seed]) for seed in shared]
        gains = [_gain(hypothesis.measure, *pair) for pair in pairs]
        if pairs and None not in gains:
            found.append(Paired(hypothesis, pairs, gains))
    adjusted = iter(holm([t_test(each.gains) for each in found if is_tested(each)]))
    return [each._replace(p=next(adjusted)) if is_tested(each) else each for each in found]


def is_tested(paired: Paired) -> bool:
    """Returns whether a claim is one that a p-value judges: that a row is better, with two seeds or more."""
    return not paired.hypothesis.equal and len(paired.gains) > 1


def _gain(measure: str, one: Result, other: Result) -> float | None:
    """Returns how much better the first result is, or `None` if a log lacks the measure."""
    if measure == "loss":
        losses = [each.log["validations"][-1].get("train_loss") for each in (one, other)]
        return None if None in losses else losses[1] - losses[0]
    if measure == "dev":
        return one.dev - other.dev
    test = first_test([one])
    return one.test(test) - other.test(test)
