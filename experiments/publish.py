"""Writes kept reports anew from their kept logs and remarks.

A name is that of a task, of a corpus of the task `translation`, or of a preregistration.
The kept logs are in one file of experiments/results/NAME; the logs of this checkout,
experiments/logs/NAME, are added first. `remarks.md` beside them explains the results of a task; a
corpus declares its own. The page over all reports is written too.
"""

import argparse
import gzip
import importlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import atomic_write, read_json, write_json

from .__main__ import find_tasks
from .overview import RESULTS, write_overview
from .runs.store import ROOT, LogStore
from .translation import task as translation
from .translation.baseline import Store
from .translation.corpus import FOLDER as CORPORA
from .translation.corpus import read_corpus
from .translation.preregistrations import PREREGISTRATIONS

ARCHIVE = "logs.json.gz"  # holds the content of each log by its name
LOGS = ROOT / "experiments" / "logs"


def publish(name: str, results: Path = RESULTS, new: Path = LOGS) -> None:
    """Writes a report to its folder in `results`, from the logs there and in folders of `new`.

    Raises:
        UserError: There are no logs, or one has other options than the task or the corpus.
    """
    folder = results / name
    logs = read_archive(folder)
    for each in PREREGISTRATIONS[name].corpora if name in PREREGISTRATIONS else (name,):
        logs |= {path.stem: read_json(path) for path in (new / each).glob("*.json")}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        unpack(logs, name, root / "experiments" / "logs")
        try:
            _report(name, folder / "remarks.md", root)
        except UserError as error:
            raise UserError(
                f"no report of the logs in {new} and {folder}, which stay as they are: {error}"
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        write_archive(folder, logs)
        for picture in folder.glob("*.png"):
            picture.unlink()
        shutil.copytree(LogStore(name, root).report, folder, dirs_exist_ok=True)
    print(f"wrote {folder / 'report.md'}")


def _report(name: str, remarks: Path, root: Path) -> None:
    """Writes the report of a task, a corpus or a preregistration below a root with its logs."""
    if name in PREREGISTRATIONS:
        found = PREREGISTRATIONS[name].report(root)
    elif name in find_tasks():
        experiment = importlib.import_module(f"experiments.{name}.task").EXPERIMENT
        paragraphs = [remarks.read_text("utf-8").strip()] if remarks.exists() else []
        found = experiment.report(LogStore(name, root), paragraphs)
    else:
        found = translation.report(read_corpus(name), Store(name, root))
    if not found:
        raise UserError(f"there is no log of a training that {name} declares; train some")


def read_archive(folder: Path) -> dict[str, Any]:
    """Returns the logs of a kept report by their names; none if there is no archive."""
    path = folder / ARCHIVE
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}


def write_archive(folder: Path, logs: dict[str, Any]) -> None:
    """Writes the logs of a kept report. The same logs always give the same file."""
    text = json.dumps(dict(sorted(logs.items())), indent=1)
    with atomic_write(folder / ARCHIVE, "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))


def unpack(logs: dict[str, Any], name: str, folder: Path) -> None:
    """Writes each log as the trainings wrote it, unless a file of its name is there.

    Args:
        logs: The logs by their names.
        name: Name of the report: of a task, a corpus or a preregistration.
        folder: Holds a folder for each task and each corpus. The log of a preregistered training
            begins with the name of its corpus.
    """
    for each, log in logs.items():
        corpus = each.partition("-")[0]
        is_corpus = (CORPORA / f"{corpus}.json").exists()
        path = folder / (corpus if is_corpus else name) / f"{each}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_json(path, log)


def main() -> None:
    places = [*RESULTS.glob(f"*/{ARCHIVE}"), *LOGS.glob("*/*.json")]
    preregistered = set().union(*(each.corpora for each in PREREGISTRATIONS.values()))
    known = {path.stem for path in CORPORA.glob("*.json")} | set(find_tasks())
    names = sorted(
        ({path.parent.name for path in places} & (known - preregistered)) | PREREGISTRATIONS.keys()
    )
    parser = argparse.ArgumentParser(prog="python -m experiments.publish", description=__doc__)
    parser.add_argument(
        "names", nargs="+", metavar="NAME", choices=names, help=f"one of {', '.join(names)}"
    )
    parser.add_argument(
        "--unpack",
        action="store_true",
        help="write no report, but the kept logs into experiments/logs, where tasks look for them",
    )
    options = parser.parse_args()
    try:
        for name in options.names:
            if options.unpack:
                unpack(read_archive(RESULTS / name), name, LOGS)
            else:
                publish(name)
                write_overview()
    except (UserError, OSError) as error:
        parser.exit(2, f"experiments.publish: {error}\n")


if __name__ == "__main__":
    main()
