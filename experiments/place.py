"""Where the work on a corpus goes."""

from pathlib import Path
from typing import NamedTuple

from .plan import Run

ROOT = Path(__file__).parents[1]


class Place(NamedTuple):
    """The folders of a corpus."""

    work: Path  # text, vocabularies, the copy of the baseline, trainings
    logs: Path  # what is left of a run that is done

    @classmethod
    def of(cls, corpus: str) -> "Place":
        """Returns the place of a corpus in this checkout."""
        return cls(ROOT / "build" / "reproduce" / corpus, ROOT / "experiments" / "logs" / corpus)

    @property
    def baseline(self) -> Path:
        """The patched copy of the baseline."""
        return self.work / "baseline"

    @property
    def compiled(self) -> Path:
        """What XLA has compiled, which the trainings share."""
        return self.work / "compiled"

    def run(self, run: Run) -> Path:
        """The folder of a run."""
        return self.work / "runs" / run.name

    def model(self, run: Run) -> Path:
        """The directory of its model."""
        return self.run(run) / "model"

    def log(self, run: Run) -> Path:
        """Its log, which is there when it is done."""
        return self.logs / f"{run.name}.json"

    def translations(self, run: Run, test: str) -> Path:
        """Its translations of a test set, beside its log."""
        return self.logs / f"{run.name}.{test}"
