"""Keeps a log of every run, makes the runs that have none, and measures process and machine."""

import functools
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from nmt.errors import UserError
from nmt.storage.files import read_json, write_json

ROOT = Path(__file__).parents[2]
_SIZE = 1024  # rows and columns of the matrices of the check
_PRODUCTS = 30


class Restart(Exception):
    """The program must start again to go on, in a new process. What is done is kept."""


def memory() -> int:
    """Returns the memory that this process has, in bytes; 0 on systems that do not say.

    Trainings leave memory behind: TensorFlow keeps each program that it compiles until the process
    ends.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except FileNotFoundError:  # not Linux
        return 0


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gflops() -> float:
    """Returns the speed of a matrix product, the median of some.

    It falls while other programs run.
    """
    matrix = np.ones((_SIZE, _SIZE), np.float32)
    seconds = []
    for _ in range(_PRODUCTS):
        begin = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - begin)
    return 2 * _SIZE**3 / median(seconds) / 1e9


class Run(Protocol):
    """What a store must know of a run. It can be a key of a dictionary."""

    name: str  # of its log
    options: Mapping[str, Any]  # values that a log must share with it to be its log

    def options_of(self, log: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns these values of a log."""


class LogStore:
    """The logs of a task: one JSON file for each run that is done.

    Args:
        task: Name of the task.
        root: The checkout.
    """

    most_memory = 4 << 30  # bytes that trainings may leave behind

    def __init__(self, task: str, root: Path = ROOT):
        self.logs = root / "experiments" / "logs" / task
        self.work = root / "runs" / "reproduce" / task
        self.report = root / "runs" / "report"
        self._memory = memory()  # before the first training
        # Caches the commit of the loaded code, before another one is checked out.
        commit_of_checkout()

    def read(self, run: Run) -> dict[str, Any] | None:
        """Returns the log of a training, or `None` if it is not done.

        Raises:
            UserError: The log has other options.
        """
        log = self.read_file(run.name)
        if not log:
            return None
        self.require_same(self.logs / f"{run.name}.json", run.options_of(log), run.options)
        return log

    def require_same(self, path: Path, was: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Refuses earlier work in a file that was done with other values.

        Raises:
            UserError: They differ by more than rounding.
        """
        names = sorted(
            name
            for name in was.keys() | wanted.keys()
            if not _same(was.get(name), wanted.get(name))
        )
        if names:
            changed = ", ".join(
                f"{name} was {was.get(name)!r} and is now {wanted.get(name)!r}" for name in names
            )
            raise UserError(
                f"{path}: {changed}; move {self.logs} and {self.work} away, or restore the "
                "earlier values"
            )

    def keep(self, run: Run, log: Mapping[str, Any]) -> None:
        self.write(run.name, {"options": run.options, **provenance(), **log})

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        write_json(self.logs / f"{name}.json", content)

    def read_file(self, name: str) -> dict[str, Any] | None:
        """Returns the content of a JSON file beside the logs, or `None`."""
        path = self.logs / f"{name}.json"
        return read_json(path) if path.exists() else None

    def read_times(self) -> list[dict[str, Any]]:
        """Returns the times of the updates that each process measured."""
        found = self.read_file("times") or {"processes": []}
        return found.get("processes", [found])  # older files have one

    def write_times(self, processes: Sequence[Mapping[str, Any]]) -> None:
        """Writes the times of the updates that each process measured."""
        self.write("times", {"processes": processes})

    def read_all(self, runs: Iterable[Run]) -> dict[Run, dict[str, Any]]:
        """Returns the logs of the runs that are done."""
        found = {run: self.read(run) for run in runs}
        return {run: log for run, log in found.items() if log}

    def make_all(
        self,
        runs: Sequence[Run],
        make: Callable[[Run], Mapping[str, Any]],
        minutes: float = 0,
    ) -> dict[str, str]:
        """Makes the trainings that are not done, and says before how long that takes.

        One that fails does not stop the others.

        Args:
            runs: The trainings, in order.
            make: Makes a training and returns the values of its log.
            minutes: How long a training took on two cores; 0 if that is not known.

        Returns:
            The reason of each failure, by the name of the training.

        Raises:
            UserError: A log has other options.
            Restart: Trainings have left much memory behind; the next call, in a new process, goes
                on.
        """
        failed: dict[str, str] = {}
        missing = [run for run in runs if not self.read(run)]
        if missing:
            print(_announcement(self.logs.name, len(missing), minutes), file=sys.stderr)
        bar = tqdm(missing, unit=" trainings", initial=len(runs) - len(missing), total=len(runs))
        for run in bar:
            if memory() - self._memory > self.most_memory:
                raise Restart
            bar.set_description(run.name)
            try:
                self.keep(run, make(run))
            except UserError as error:
                failed[run.name] = str(error)
        return failed


def _announcement(name: str, count: int, minutes: float) -> str:
    """Returns what is trained now and how long it takes."""
    trains = f"{name}: trains {count} network{'s' * (count != 1)}"
    if not minutes:
        return f"{trains}; how long that takes was never measured"
    return f"{trains}, about {count * minutes / 60:.1f} hours on two cores; a second call continues"


def provenance() -> dict[str, Any]:
    """Returns the commit, the library versions and the number of cores.

    The logs of the kept reports have the number of cores of the machine.
    """
    import keras  # not at the top, because only trainings need them
    import tensorflow as tf

    return {
        "commit": commit_of_checkout(),
        "versions": {module.__name__: module.__version__ for module in (tf, keras, np)},
        "cores": usable_cores(),
    }


@functools.cache
def commit_of_checkout(root: Path = ROOT) -> str:
    """Returns the commit of the checkout at the first call, or `unknown`.

    A plus means that a tracked file has changed.
    """
    return read_commit(root, "--untracked-files=no")


def read_commit(root: Path, *which: str) -> str:
    """Returns the commit of a checkout, with a plus if a file has changed, or `unknown`.

    Args:
        root: The checkout.
        *which: Arguments of `git status` that say which files count.
    """
    git = ["git", "-C", str(root)]
    head = subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", *which], capture_output=True).stdout
    return f"{head or 'unknown'}{'+' if changed else ''}"


def _same(one: Any, other: Any) -> bool:
    """Returns whether two values are equal.

    Two numbers may differ by rounding, as 0.009 and 3 times 0.003.
    """
    numbers = isinstance(one, float) and isinstance(other, float)
    return math.isclose(one, other) if numbers else one == other
