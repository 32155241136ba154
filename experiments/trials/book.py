"""Keeps a log of every trial, and makes the trials that have none."""

import functools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from nmt.errors import UserError
from nmt.storage.files import atomic_write

from .commit import read_commit
from .memory import Growth
from .options import changed_options
from .trial import Trial

ROOT = Path(__file__).parents[2]


class Book:
    """The logs of a task: one JSON file for each trial that is done.

    Args:
        task: Name of the task.
        root: The checkout.
    """

    def __init__(self, task: str, root: Path = ROOT):
        self.logs = root / "experiments" / "logs" / task
        self.work = root / "build" / "reproduce" / task
        self.report = root / "build" / "report"
        commit_of_checkout()  # caches the commit of the loaded code, before another one is checked out

    @functools.cached_property
    def _growth(self) -> Growth:
        """The growth since the first training of this process."""
        return Growth()

    def folder(self, trial: Trial) -> Path:
        """Returns the folder of the checkpoints of a trial."""
        return self.work / trial.name

    def read(self, trial: Trial) -> dict[str, Any] | None:
        """Returns the log of a trial, or `None` if it is not done.

        Raises:
            UserError: The log has other options.
        """
        if not (log := self.read_file(trial.name)):
            return None
        if changed := changed_options(log["options"], trial.options):
            raise UserError(f"{trial.name}: {changed}; move {self.logs} away, or restore the options")
        return log

    def keep(self, trial: Trial, log: Mapping[str, Any]) -> None:
        """Writes the log of a trial and removes its checkpoints."""
        self.write(trial.name, {"options": trial.options, **log, **provenance()})
        shutil.rmtree(self.folder(trial), ignore_errors=True)

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Writes a JSON file beside the logs."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.logs / f"{name}.json") as file:
            json.dump(content, file, indent=1)
            file.write("\n")

    def read_file(self, name: str) -> dict[str, Any] | None:
        """Returns the content of a JSON file beside the logs, or `None`."""
        path = self.logs / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def read_all(self, trials: Iterable[Trial]) -> dict[Trial, dict[str, Any]]:
        """Returns the logs of the trials that are done."""
        return {trial: log for trial in trials if (log := self.read(trial))}

    def make_all(
        self, trials: Sequence[Trial], make: Callable[[Trial, Path], Mapping[str, Any]]
    ) -> dict[Trial, dict[str, Any]]:
        """Makes the trials that are not done, and returns the logs of all.

        Args:
            trials: The trials, in order.
            make: Trains a trial, from the checkpoints in a folder if it has any, and returns the values of its log.

        Raises:
            MemoryGrown: Trainings have left much memory behind; the next call, in a new process, goes on.
        """
        missing = [trial for trial in trials if not self.read(trial)]
        bar = tqdm(missing, unit=" trainings", initial=len(trials) - len(missing), total=len(trials))
        for trial in bar:
            self._growth.check()
            bar.set_description(trial.name)
            keras.backend.clear_session()
            self.keep(trial, make(trial, self.folder(trial)))
        return self.read_all(trials)


def provenance() -> dict[str, Any]:
    """Returns the commit, the library versions and the number of cores."""
    return {
        "commit": commit_of_checkout(),
        "versions": {module.__name__: module.__version__ for module in (tf, keras, np)},
        "cores": os.cpu_count(),
    }


@functools.cache
def commit_of_checkout(root: Path = ROOT) -> str:
    """Returns the commit of the checkout at the first call, with a plus if a tracked file has changed, or `unknown`."""
    return read_commit(root, "--untracked-files=no")
