"""What is left of the runs that are done: the logs, with the rows that they are of."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from .corpus import Corpus
from .place import Place
from .row import Row, Run
from .runs import is_done, read_log


class Result(NamedTuple):
    """One run that is done."""

    row: Row
    seed: int
    log: dict[str, Any]  # as `runs.make` writes it
    translations: dict[str, Path]  # by test set

    @property
    def dev(self) -> float:
        """BLEU of the best validation, whose model is the one that is tested."""
        return max(each["bleu"] for each in self.log["validations"])

    def test(self, name: str) -> float:
        """BLEU of a test set."""
        return self.log["tests"][name]["bleu"]


def read_results(runs: Iterable[Run], corpus: Corpus, place: Place) -> list[Result]:
    """Returns the results of those runs that are done.

    Raises:
        UserError: A log is of something else.
    """
    done = [(run, read_log(run, place)) for run in runs if is_done(run, corpus, place)]
    return [
        Result(run.row, run.seed, log, {test: place.translations(run, test) for test in log["tests"]})
        for run, log in done
    ]


def by_row(results: Iterable[Result]) -> dict[Row, list[Result]]:
    """Returns the results of each row, in order."""
    found: dict[Row, list[Result]] = {}
    for result in results:
        found.setdefault(result.row, []).append(result)
    return found


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Returns a mean as text, of more than one value with their standard deviation."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"
