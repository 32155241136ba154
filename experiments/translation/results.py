"""The results: the logs of the runs that are done, with the rows they belong to."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .corpus import Corpus
from .place import Place
from .row import Row, Run
from .runs import is_done, read_log


class Result(NamedTuple):
    """A run that is done."""

    row: Row
    seed: int
    log: dict[str, Any]  # as `runs.make` writes it
    translations: dict[str, Path]  # by test set

    @property
    def best(self) -> dict[str, Any]:
        """The validation with the highest BLEU; its model is tested."""
        return max(self.log["validations"], key=lambda each: each["bleu"])

    @property
    def step_size_chosen(self) -> bool:
        """Whether a grid has chosen its step size."""
        return self.log["step_size_chosen"]

    @property
    def dev(self) -> float:
        """BLEU of the best validation."""
        return self.best["bleu"]

    def test(self, name: str) -> float:
        """Returns the BLEU of a test set."""
        return self.log["tests"][name]["bleu"]


def read_results(runs: Iterable[Run], corpus: Corpus, place: Place) -> list[Result]:
    """Returns the results of the runs that are done.

    Raises:
        UserError: A log is of a run with other options.
    """
    done = [(run, read_log(run, place)) for run in runs if is_done(run, corpus, place)]
    return [
        Result(run.row, run.seed, log, {test: place.translations(run, test) for test in log["tests"]})
        for run, log in done
    ]


def by_row(results: Iterable[Result]) -> dict[Row, list[Result]]:
    """Returns the results of each row, in the order given."""
    found: dict[Row, list[Result]] = {}
    for result in results:
        found.setdefault(result.row, []).append(result)
    return found
