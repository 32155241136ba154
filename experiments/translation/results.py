"""Reads the logs of the runs that are done, and chooses learning rates."""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from .baseline import Store
from .condition import Condition, Run
from .corpus import Corpus
from .runs import CorpusRun


class Result(NamedTuple):
    """A run that is done."""

    condition: Condition
    seed: int
    log: dict[str, Any]  # as `runs.make` writes it
    # of each test set, by which means over them are weighted
    sentences: Mapping[str, int] = MappingProxyType({})

    @property
    def best(self) -> dict[str, Any]:
        """The validation with the highest BLEU, or the lowest loss if that chooses.

        Its model is tested.
        """
        if self.log["options"].get("valid_metric") == "loss":
            return min(self.log["validations"], key=lambda each: each["valid_loss"])
        return max(self.log["validations"], key=lambda each: each["bleu"])

    @property
    def bleu(self) -> float:
        """BLEU over all test sets, weighted by their sentences."""
        return self._over_tests("bleu")

    @property
    def chrf(self) -> float:
        """chrF over all test sets, weighted by their sentences; NaN if the log is older."""
        return self._over_tests("chrf")

    def _over_tests(self, metric: str) -> float:
        tests = self.log["tests"]
        weights = {test: self.sentences.get(test, 1) for test in tests}
        return sum(weights[test] * tests[test].get(metric, math.nan) for test in tests) / sum(
            weights.values()
        )

    @property
    def valid_loss(self) -> float:
        """The lowest loss of a validation, in nats per token."""
        return min(each["valid_loss"] for each in self.log["validations"])

    @property
    def dev(self) -> float:
        return self.best["bleu"]

    def test(self, name: str) -> float:
        return self.log["tests"][name]["bleu"]


def read_results(runs: Iterable[Run], corpus: Corpus, store: Store) -> list[Result]:
    """Returns the results of the runs that are done.

    Raises:
        UserError: A log is of a run with other options.
    """
    found = []
    for run in runs:
        log = store.read(CorpusRun(run, corpus, store))
        if log:
            found.append(Result(run.condition, run.seed, log, corpus.sentences))
    return found


def by_condition(results: Iterable[Result]) -> dict[Condition, list[Result]]:
    """Returns the results of each condition, in the order given."""
    found: dict[Condition, list[Result]] = {}
    for result in results:
        found.setdefault(result.condition, []).append(result)
    return found


def choose(
    conditions: Iterable[Condition], grid: Iterable[Result], step_sizes: Sequence[float]
) -> dict[Condition, float | None]:
    """Returns the learning rate of each condition: that with the best validation.

    `None` stands for that of its options. A condition is left out as long as the grid that chooses
    its learning rate is not wholly done.

    Args:
        conditions: All conditions.
        grid: The results of `grid_runs` that are done.
        step_sizes: The grid; empty if the corpus has none.
    """
    if not step_sizes:
        return dict.fromkeys(conditions)
    whole = {
        condition.name: done
        for condition, done in by_condition(grid).items()
        if len(done) == len(step_sizes)
    }
    best = {name: max(done, key=lambda each: each.dev) for name, done in whole.items()}
    found: dict[Condition, float | None] = {}
    for condition in conditions:
        if "learning_rate" in condition.options:
            found[condition] = None
        elif (condition.step_size_of or condition.name) in best:
            chosen = best[condition.step_size_of or condition.name]
            found[condition] = chosen.log["options"]["learning_rate"]
    return found
