"""`python -m experiments.keep TASK ...` writes the kept reports of tasks anew from their kept logs and remarks.

The logs are in experiments/results/TASK/logs; copy those of new trainings there first. `remarks.md` beside them
explains the results. The page over all reports is written too.
"""

import argparse
import importlib
import shutil
import tempfile
from pathlib import Path

from nmt.errors import UserError

from .overview import RESULTS, write_overview
from .trials.book import Book
from .trials.experiment import report


def keep(task: str, results: Path = RESULTS) -> None:
    """Writes the report of a task, without its HTML page, beside its logs.

    Args:
        task: Name of a task, one of those with an `EXPERIMENT`.
        results: Holds a folder for each kept report.

    Raises:
        UserError: There are no logs, or one has other options than the task.
    """
    folder = results / task
    remarks = folder / "remarks.md"
    book = Book(task)
    with tempfile.TemporaryDirectory() as temporary:
        book.logs, book.report = folder / "logs", Path(temporary, "report")
        report(
            importlib.import_module(f"experiments.{task}.task").EXPERIMENT,
            book,
            [remarks.read_text("utf-8").strip()] if remarks.exists() else [],
        )
        for path in book.report.iterdir():
            if path.suffix != ".html":
                shutil.copy(path, folder)


def main() -> None:
    tasks = sorted(path.name for path in RESULTS.iterdir() if (RESULTS.parent / path.name / "section.py").exists())
    parser = argparse.ArgumentParser(prog="python -m experiments.keep", description=__doc__.split("` ")[1])
    parser.add_argument("tasks", nargs="+", metavar="TASK", choices=tasks, help=f"one of {', '.join(tasks)}")
    try:
        for task in parser.parse_args().tasks:
            keep(task)
    except UserError as error:
        parser.exit(2, f"experiments.keep: {error}\n")
    write_overview()


if __name__ == "__main__":
    main()
