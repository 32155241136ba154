"""The folders of a corpus: work, logs and report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import UserError

from ..trials.book import Book, changed_options
from .row import Run

ROOT = Path(__file__).parents[2]


class Place(NamedTuple):
    """The folders of a corpus in a checkout."""

    corpus: str
    root: Path = ROOT

    @property
    def work(self) -> Path:
        """Text, vocabularies, the copy of the baseline, and trainings."""
        return self.root / "build" / "reproduce" / self.corpus

    @property
    def logs(self) -> Path:
        """The logs of the runs that are done."""
        return self.root / "experiments" / "logs" / self.corpus

    @property
    def report(self) -> Path:
        """The report of the last corpus."""
        return self.root / "build" / "report"

    @property
    def baseline(self) -> Path:
        """The patched copy of the baseline."""
        return self.work / "baseline"

    @property
    def compiled(self) -> Path:
        """The cache of XLA, which all trainings share."""
        return self.work / "compiled"

    def run(self, run: Run) -> Path:
        """The folder of a run."""
        return self.work / "runs" / run.name

    def model(self, run: Run) -> Path:
        """The model directory of a run."""
        return self.run(run) / "model"

    @property
    def book(self) -> Book:
        """The logs."""
        return Book(self.corpus, self.root)

    def translations(self, run: Run, test: str) -> Path:
        """The translations of a test set by a run, beside its log."""
        return self.logs / f"{run.name}.{test}"

    def require_same(self, path: Path, was: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Refuses earlier work that was done with other values.

        Args:
            path: The file that holds the earlier values.
            was: The earlier values.
            wanted: The current values.

        Raises:
            UserError: They differ.
        """
        if changed := changed_options(was, wanted):
            raise UserError(f"{path}: {changed}; move {self.logs} and {self.work} away, or restore the earlier values")
