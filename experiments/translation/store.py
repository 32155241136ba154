"""The folders of a corpus: work, logs and report."""

from pathlib import Path

from ..runs.store import LogStore
from .condition import Run


class Store(LogStore):
    """The logs of a corpus, and its other folders in a checkout."""

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
