"""Writes kept reports anew from their kept logs and remarks.

A name is that of a task, of a corpus of the task `translation`, or of a plan, such as `planned`.
The kept logs are in one file of experiments/results/NAME; the logs of this checkout,
experiments/logs/NAME, are added first. `remarks.md` beside them explains the results of a task; a
corpus declares its own. The page over all reports is written too.
"""

import argparse
import importlib
import shutil
import tempfile
from pathlib import Path

from nmt.errors import UserError

from .__main__ import find_tasks
from .archive import ARCHIVE, add_logs, read_archive, unpack, write_archive
from .overview import RESULTS, write_overview
from .runs.store import ROOT, LogStore
from .translation import task as translation
from .translation.corpus import FOLDER as CORPORA
from .translation.corpus import read_corpus
from .translation.preregistrations import PREREGISTRATIONS
from .translation.store import Store


def publish(name: str, results: Path = RESULTS, new: Path = ROOT / "experiments" / "logs") -> None:
    """Writes a report to its folder in `results`, from the logs there and those in the folders of
    `new`.

    Raises:
        UserError: There are no logs, or one has other options than the task or the corpus.
    """
    folder = results / name
    with tempfile.TemporaryDirectory() as temporary:
        kept = Path(
            temporary, "kept"
        )  # a copy: logs that the report refuses do not reach the archive
        if folder.exists():
            shutil.copytree(folder, kept)
        for each in PREREGISTRATIONS[name].corpora if name in PREREGISTRATIONS else (name,):
            add_logs(kept, new / each)
        make = (
            _translation
            if name in PREREGISTRATIONS or (CORPORA / f"{name}.json").exists()
            else _task
        )
        try:
            made = make(name, kept, Path(temporary))
        except UserError as error:
            raise UserError(
                f"no report of the logs in {new} and {folder}, which stay as they are: {error}"
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        write_archive(folder, read_archive(kept))
        for picture in folder.glob("*.png"):
            picture.unlink()
        for path in made.iterdir():
            shutil.copy(path, folder)
    print(f"wrote {folder / 'report.md'}")


def _task(name: str, folder: Path, temporary: Path) -> Path:
    """Writes the report of a task to a temporary folder and returns its own."""
    remarks = folder / "remarks.md"
    store = LogStore(name, temporary)
    unpack(folder, name, store.logs.parent)
    experiment = importlib.import_module(f"experiments.{name}.task").EXPERIMENT
    experiment.report(store, [remarks.read_text("utf-8").strip()] if remarks.exists() else [])
    return store.report


def _translation(name: str, folder: Path, temporary: Path) -> Path:
    """Writes the report of a corpus or a plan to a temporary folder and returns its own."""
    plan = PREREGISTRATIONS.get(name)
    store = Store(name, temporary)
    unpack(folder, name, store.logs.parent)
    if not (plan.report(temporary) if plan else translation.report(read_corpus(name), store)):
        raise UserError(f"there is no log of a training that {name} declares; train some")
    return store.report


def main() -> None:
    places = [*RESULTS.glob(f"*/{ARCHIVE}"), *(ROOT / "experiments" / "logs").glob("*/*.json")]
    of_plans = set().union(*(plan.corpora for plan in PREREGISTRATIONS.values()))
    known = {path.stem for path in CORPORA.glob("*.json")} | set(find_tasks())
    names = sorted(
        {path.parent.name for path in places} & known - of_plans | PREREGISTRATIONS.keys()
    )
    parser = argparse.ArgumentParser(prog="python -m experiments.publish", description=__doc__)
    parser.add_argument(
        "names", nargs="+", metavar="NAME", choices=names, help=f"one of {', '.join(names)}"
    )
    try:
        for name in parser.parse_args().names:
            publish(name)
            write_overview()
    except UserError as error:
        parser.exit(2, f"experiments.publish: {error}\n")


if __name__ == "__main__":
    main()
