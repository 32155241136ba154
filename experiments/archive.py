"""`python -m experiments.archive NAME FOLDER` writes the logs of a kept report to a folder, each as JSON.

They are kept in one compressed file, which holds the content of each log by its name.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from nmt.storage.files import atomic_write

ARCHIVE = "logs.json.gz"


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
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in logs.glob("*.json")}
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        write_archive(folder, read_archive(folder) | found)


def unpack(folder: Path, to: Path) -> None:
    """Writes each log of a kept report to a folder, as the trainings wrote it."""
    to.mkdir(parents=True, exist_ok=True)
    for name, log in read_archive(folder).items():
        (to / f"{name}.json").write_text(json.dumps(log), "utf-8")


if __name__ == "__main__":
    name, to = sys.argv[1:]
    unpack(Path(__file__).parent / "results" / name, Path(to))
