"""Finds the shards of a job, and those that its output folder has already."""

import hashlib
import os
from dataclasses import dataclass

from ..errors import UserError
from . import storage
from .chunks import FOLDER, Shard

_UNREADABLE = (".zst", ".bz2", ".xz", ".lzma", ".zip", ".deflate")


@dataclass(frozen=True)
class Job:
    """Settings of a job. Paths are absolute and have no slash at the end."""

    export: str  # folder of the export
    output: str  # folder of the translations
    chunk_lines: int  # lines that are translated, and written, at a time
    max_bytes: int  # longest line that is translated
    model_timeout: int  # longest time for the model to translate that many lines, in seconds
    run: str  # name of this run of the job

    def own(self, name: str = "") -> str:
        """Returns the path of a file of the job that is no translation, or of the folder of all."""
        return f"{self.output}/{FOLDER}/{name}".rstrip("/")


def find_shards(patterns: list[str], output: str) -> list[Shard]:
    """Returns the shards that patterns name."""
    found: dict[str, Shard] = {}
    for pattern in patterns:
        matched = storage.find(pattern)
        if not matched:
            raise UserError(
                f"no file matches {pattern}; give text files, and put a pattern in quotes"
            )
        shards = [Shard(storage.plain(each.path), storage.state(each), output) for each in matched]
        for shard in shards:
            if found.setdefault(shard.name, shard).source != shard.source:
                raise UserError(
                    f"{found[shard.name].source} and {shard.source} have the same name; translate "
                    "them into different folders"
                )
            if "://" not in shard.source and os.path.isdir(shard.source):
                raise UserError(
                    f"{shard.source} is a folder; give files, or a pattern in quotes: "
                    f"'{shard.source}/*'"
                )
            if shard.name == FOLDER:
                raise UserError(
                    f"{shard.source} has the name of a folder that the job makes; rename it"
                )
            if shard.name.endswith(_UNREADABLE):
                raise UserError(f"{shard.source} cannot be read; give plain text or .gz files")
    for pattern in patterns:
        if among := storage.matching(pattern, [shard.target for shard in found.values()]):
            raise UserError(f"{among[0]} would be among the texts; give another output folder")
    return list(found.values())


def prepare_output(job: Job) -> None:
    """Marks the output folder as one of this export."""
    wanted = {"export": _fingerprint(job.export), "max_bytes": job.max_bytes}
    path = job.own("job.json")
    with storage.usable(job.output, "used"):
        storage.write_json(path, job.own(), wanted)
        before = storage.read_json(path)
    if before.get("export") != wanted["export"]:
        raise UserError(
            f"{job.output} has translations of another export; give another output folder"
        )
    if before.get("max_bytes") != job.max_bytes:
        raise UserError(
            f"{job.output} has translations with --max_bytes {before.get('max_bytes')}; give that, "
            "or another output folder"
        )


def missing(job: Job, shards: list[Shard]) -> tuple[list[Shard], list[Shard]]:
    """Returns the shards without a translation, and those with one of another text."""
    there = {each.path for each in storage.find(f"{job.output}/*")}
    records = {each.path for each in storage.find(job.own("texts/*"))}
    stale = [shard for shard in shards if shard.target in there and shard.record not in records]
    return [shard for shard in shards if shard.target not in there], stale


def _fingerprint(export: str) -> str:
    """Returns a digest of an export; the index of the variables holds a checksum of each."""
    if not storage.exists(f"{export}/saved_model.pb"):
        raise UserError(
            f"{export} has no saved_model.pb; give a folder that `python -m nmt export` wrote"
        )
    digest = hashlib.sha256()
    for pattern in ("saved_model.pb", "variables/variables.index", "assets/*"):
        for each in storage.find(f"{export}/{pattern}"):
            with storage.usable(each.path), storage.open_text(each.path) as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()
