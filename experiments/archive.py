"""Writes the logs of a kept report where its task looks for them.

They are kept in one compressed file, which holds the content of each log by its name. Each becomes
a JSON file in experiments/logs/NAME; those of a plan, in the folders of its corpora. A file that is
there stays.
"""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from nmt.storage.files import atomic_write, read_json

ARCHIVE = "logs.json.gz"
_FOLDER = Path(__file__).parent
_CORPORA = _FOLDER / "translation" / "corpora"


def read_archive(folder: Path) -> dict[str, Any]:
    """Returns the logs of a kept report by their names without `.json`; none if there is no archive."""
    path = folder / ARCHIVE
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}


def write_archive(folder: Path, logs: dict[str, Any]) -> None:
    """Writes the logs of a kept report. The same logs always give the same file."""
    text = json.dumps(dict(sorted(logs.items())), indent=1)
    with atomic_write(folder / ARCHIVE, "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))


def add_logs(folder: Path, logs: Path) -> None:
    """Adds the JSON files of a folder to the archive of a kept report."""
    found = {path.stem: read_json(path) for path in logs.glob("*.json")}
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        write_archive(folder, read_archive(folder) | found)


def unpack(folder: Path, name: str, logs: Path) -> None:
    """Writes each log of a kept report, as the trainings wrote it, unless a file of its name is
    there.

    Args:
        folder: Holds the archive.
        name: Name of the report: of a task, a corpus or a plan.
        logs: Holds a folder for each task and each corpus. The log of a training of a plan begins
            with the name of its corpus.
    """
    for each, log in read_archive(folder).items():
        corpus = each.partition("-")[0]
        path = logs / (corpus if _is_corpus(corpus) else name) / f"{each}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with atomic_write(path) as file:
                json.dump(log, file)


def _is_corpus(name: str) -> bool:
    return (_CORPORA / f"{name}.json").exists()


def main() -> None:
    results = _FOLDER / "results"
    names = sorted(path.parent.name for path in results.glob(f"*/{ARCHIVE}"))
    parser = argparse.ArgumentParser(prog="python -m experiments.archive", description=__doc__)
    parser.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    parser.add_argument(
        "--logs",
        metavar="FOLDER",
        type=Path,
        default=_FOLDER / "logs",
        help="the folder of all logs (default: experiments/logs)",
    )
    options = parser.parse_args()
    try:
        unpack(results / options.name, options.name, options.logs)
    except OSError as error:
        parser.exit(2, f"experiments.archive: {error}\n")


if __name__ == "__main__":
    main()
