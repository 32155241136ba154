"""`python -m experiments.keep NAME ...` writes kept reports anew from their kept logs and remarks.

A name is that of a task, or of a corpus of the task `translation`. The logs are in experiments/results/NAME/logs; copy
those of new trainings there first. `remarks.md` beside them explains the results of a task; a corpus declares its own.
The page over all reports is written too.
"""

import argparse
import importlib
import shutil
import tempfile
from pathlib import Path

from nmt.errors import UserError

from .overview import RESULTS, write_overview
from .translation import task as translation
from .translation.corpus import FOLDER as CORPORA
from .translation.corpus import read_corpus
from .translation.place import Place
from .trials.book import Book
from .trials.experiment import report


def keep(name: str, results: Path = RESULTS) -> None:
    """Writes a report, without its HTML page, beside its logs.

    Args:
        name: A task with an `EXPERIMENT`, or a corpus.
        results: Holds a folder for each kept report.

    Raises:
        UserError: There are no logs, or one has other options than the task or the corpus.
    """
    folder = results / name
    with tempfile.TemporaryDirectory() as temporary:
        make = _translation if (CORPORA / f"{name}.json").exists() else _task
        made = make(name, folder, Path(temporary))
        for picture in [*folder.glob("*.png"), *folder.glob("*.svg")]:
            picture.unlink()
        for path in made.iterdir():
            if path.suffix != ".html":
                shutil.copy(path, folder)
    print(f"wrote {folder / 'report.md'}")


def _task(name: str, folder: Path, temporary: Path) -> Path:
    """Writes the report of a task to a temporary folder and returns its own."""
    remarks = folder / "remarks.md"
    book = Book(name)
    book.logs, book.report = folder / "logs", temporary / "report"
    experiment = importlib.import_module(f"experiments.{name}.task").EXPERIMENT
    report(experiment, book, [remarks.read_text("utf-8").strip()] if remarks.exists() else [])
    return book.report


def _translation(name: str, folder: Path, temporary: Path) -> Path:
    """Writes the report of a corpus to a temporary folder and returns its own."""
    place = Place(name, temporary)
    shutil.copytree(folder / "logs", place.logs)
    if not translation.report(read_corpus(name), place):
        raise UserError(f"{folder / 'logs'} has no log of a training that {name} declares; copy some there")
    return place.report


def main() -> None:
    names = sorted(path.parent.name for path in RESULTS.glob("*/logs"))
    parser = argparse.ArgumentParser(prog="python -m experiments.keep", description=__doc__.split("` ")[1])
    parser.add_argument("names", nargs="+", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    try:
        for name in parser.parse_args().names:
            keep(name)
    except UserError as error:
        parser.exit(2, f"experiments.keep: {error}\n")
    write_overview()


if __name__ == "__main__":
    main()
