"""The course of a task: the grid of step sizes, the reported seeds, the times of the updates, and the report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import keras

from nmt.errors import UserError
from nmt.storage.files import exclusive

from ..reporting.section import Section
from ..reporting.writer import write_report
from .book import Book
from .clock import ROUNDS, time_updates
from .sections import Logs
from .trial import SEEDS, Setting, Trial, TrialRow, best_step_sizes, grid_trials, seed_trials


@dataclass(frozen=True)
class Experiment:
    """What a task compares, and how it reports.

    Args:
        name: Name of the folder of its logs.
        title: Title of the report.
        rows: The kinds of normalization.
        settings: The settings to train in.
        step_size: Step size of Adam, which the factors of the grid multiply.
        metric: Key of a validation. The lowest value chooses the step size.
        sections: Maps logs and times to the sections of the report.
        about: Paragraphs at the beginning of the report, in Markdown.
        seeds: The reported seeds.
        rounds: Rounds of the timing.
    """

    name: str
    title: str
    rows: Sequence[TrialRow]
    settings: Sequence[Setting]
    step_size: float
    metric: str
    sections: Callable[[Logs, Mapping[str, Any] | None], Sequence[Section]]
    about: Sequence[str] = ()
    seeds: Sequence[int] = SEEDS
    rounds: int = ROUNDS


class Work(NamedTuple):
    """What needs the data of a task."""

    train: Callable[[Trial, Path], Mapping[str, Any]]  # trains, from the checkpoints in a folder if any; returns a log
    build: Callable[[TrialRow], keras.Model]  # the compiled model of a row, for the timing
    batches: Mapping[str, tuple[Any, Any]]  # inputs and targets of a batch of each setting, for the timing


def conduct(experiment: Experiment, load: Callable[[], Work], so_far: bool, root: Path) -> None:
    """Trains and times what is not done yet, and writes the report.

    Args:
        experiment: The task.
        load: Reads the data. It is not called if only a report is wanted.
        so_far: Report on the trials that are done; train and measure nothing.
        root: The folder of logs and report.

    Raises:
        UserError: The data is not there, or nothing is done yet.
    """
    book = Book(experiment.name, root)
    grid = grid_trials(experiment.rows, experiment.settings, experiment.step_size)
    if not so_far:
        work = load()
        with exclusive(book.work):
            _make(book, experiment, grid, work)
    logs = book.read_all(grid)
    logs |= book.read_all(seed_trials(best_step_sizes(logs, experiment.metric), experiment.seeds))
    if not logs:
        raise UserError(f"no training of the task {experiment.name} is done yet")
    made = experiment.sections(logs, book.read_file("times"))
    write_report(book.report, experiment.title, experiment.about, {"task": experiment.name}, made)
    print(f"wrote {book.report / 'report.html'}")


def _make(book: Book, experiment: Experiment, grid: list[Trial], work: Work) -> None:
    step_sizes = best_step_sizes(book.make_all(grid, work.train), experiment.metric)
    book.make_all(seed_trials(step_sizes, experiment.seeds), work.train)
    if not book.read_file("times"):
        book.write("times", time_updates(experiment.rows, work.batches, work.build, experiment.rounds))
