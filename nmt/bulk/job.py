"""What a job has to do: its shards, and what is in the output folder already."""

import os
from dataclasses import dataclass

from ..errors import UserError
from . import storage
from .pieces import FOLDER, Shard, failed_folder, records_folder

_UNREADABLE = (".zst", ".bz2", ".xz", ".lzma", ".zip", ".deflate")


@dataclass(frozen=True)
class Job:
    """Settings of a job. Paths are absolute and have no slash at the end.

    Attributes:
        export: Folder of the export.
        output: Folder of the translations.
        piece_lines: Lines that are translated, and written, at a time.
        max_bytes: Longest line that is translated.
        model_timeout: Longest time for the model to translate that many lines.
        started: When the job started, in seconds since 1970.
    """

    export: str
    output: str
    piece_lines: int
    max_bytes: int
    model_timeout: int
    started: float

    @property
    def folder(self) -> str:
        """Folder of everything but the translations."""
        return f"{self.output}/{FOLDER}"

    @property
    def failed(self) -> str:
        return failed_folder(self.output)

    @property
    def report(self) -> str:
        return f"{self.folder}/report.json"

    @property
    def error(self) -> str:
        """File for the whole message of Beam if the job fails."""
        return f"{self.folder}/error.txt"


def find_shards(patterns: list[str], output: str) -> list[Shard]:
    """Returns the shards that patterns name.

    Raises:
        UserError: A pattern names no file, a name or extension cannot be used, two translations would have one name, or
            a translation would be among the texts.
    """
    found = {}
    for pattern in patterns:
        matched = storage.find(pattern)
        if not matched:
            raise UserError(f"no file matches {pattern}; give text files, and put a pattern in quotes")
        for each in matched:
            path = storage.absolute(each.path)
            found[path] = Shard(path, storage.state_of(each), os.path.basename(path), output)
    shards = list(found.values())
    _require_names(shards)
    for shard in shards:
        if _inside(shard.source, output) or any(storage.matches(pattern, shard.target) for pattern in patterns):
            raise UserError(f"{shard.target} would be among the texts; give another output folder")
    return shards


def prepare_output(job: Job, export: str) -> None:
    """Creates the output folder.

    Args:
        job: The job.
        export: The fingerprint of its export.

    Raises:
        UserError: The folder has translations by another export or with another `max_bytes`, or cannot be used.
    """
    for folder in (job.output, job.folder, job.failed, records_folder(job.output)):
        storage.make_folder(folder)
    path, wanted = f"{job.folder}/job.json", {"export": export, "max_bytes": job.max_bytes}
    try:
        if not storage.exists(path):
            storage.write_json(path, job.folder, wanted)
        before = storage.read_json(path)
    except (OSError, ValueError) as error:  # ValueError: a package for this kind of path is missing
        raise UserError(f"{job.output} cannot be used: {' '.join(str(error).split())}") from None
    if before != wanted:
        what = "export" if before.get("export") != export else f"--max_bytes, {before.get('max_bytes')}"
        raise UserError(f"{job.output} has translations of another {what}; give another output folder")


def missing(shards: list[Shard], output: str) -> tuple[list[Shard], list[Shard]]:
    """Returns the shards that have no translation yet, and those whose translation is that of another text."""
    there = {os.path.basename(each.path): each.last_updated_in_seconds for each in storage.find(f"{output}/*")}
    records = {os.path.basename(each.path) for each in storage.find(f"{records_folder(output)}/*")}
    todo = [shard for shard in shards if shard.name not in there]
    known = {record.rsplit(".", 2)[0] for record in records}

    def is_stale(shard: Shard) -> bool:
        if shard.name in known:
            return os.path.basename(shard.record) not in records
        return float(shard.state.partition("-")[2]) > there[shard.name]  # it is of an earlier version

    stale = [shard for shard in shards if shard.name in there and is_stale(shard)]
    return todo, stale


def _require_names(shards: list[Shard]) -> None:
    """Checks the names of the translations."""
    sources: dict[str, str] = {}
    for shard in shards:
        if shard.name in sources:
            both = f"{sources[shard.name]} and {shard.source}"
            raise UserError(f"{both} have the same name; translate them into different folders")
        sources[shard.name] = shard.source
        storage.require_no_pattern(shard.source)
        if shard.name == FOLDER:
            raise UserError(f"{shard.source} has the name of the folder of the job's own files; rename it")
        if shard.name.endswith(_UNREADABLE):
            raise UserError(f"{shard.source} cannot be read; give plain text or .gz files")


def _inside(path: str, folder: str) -> bool:
    if "://" not in path and "://" not in folder:
        path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path.startswith(f"{folder.rstrip('/')}/")
