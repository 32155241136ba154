"""Splits shards into chunks of lines; reads and writes chunks and reports."""

import hashlib
import json
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, BinaryIO

from .model import Failure, text_of

_BLOCK = 1 << 20  # bytes
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_AROUND = len(_BYTE_ORDER_MARK + b"\r\n")  # bytes that may surround a sentence
FOLDER = "_bulk"  # in the output folder; Spark and Hadoop ignore names that begin like this


@dataclass(frozen=True)
class Shard:
    """Names a text to translate, and where its translation goes."""

    source: str  # path of the text
    state: str  # stands for its content: its size and when it was written
    output: str  # the output folder

    @property
    def name(self) -> str:
        return os.path.basename(self.source)

    @property
    def target(self) -> str:
        return f"{self.output}/{self.name}"

    @property
    def digest(self) -> str:
        """Identifies the text: its path and its state."""
        return hashlib.sha256(f"{self.state} {self.source}".encode()).hexdigest()[:16]

    def own(self, folder: str, ending: str = "") -> str:
        """Returns a path in a folder of the job.

        `texts` has a record of the text, `failed` the lines that have no translation, or none that
        is whole, and `chunks` a folder of translated chunks and of files that are being written.
        """
        return f"{self.output}/{FOLDER}/{folder}/{self.name}{ending}"

    @property
    def record(self) -> str:
        """The file that says of which text the translation is. Its name stands for both."""
        return self.own("texts", f".{self.digest}.json")


@dataclass(frozen=True)
class Chunk:
    """Describes consecutive lines of a shard."""

    shard: Shard
    offset: int  # bytes before the lines in the decompressed text
    first: int  # lines before them
    lines: int  # their number

    @property
    def path(self) -> str:
        """The file of the translations. Its name stands for the text of the shard and the lines."""
        return self.shard.own("chunks", f"/{self.shard.digest}.{self.first}.{self.lines}")


@dataclass(frozen=True)
class Report:
    """Counts of a job, or of a part of it."""

    shards: int = 0  # shards that were written
    lines: int = 0  # lines of these shards
    failed: int = 0  # lines that have no translation, or none that is whole
    translated: int = (
        0  # lines that this job translated; the others failed or are from an earlier run
    )
    # Shards that are missing in the output -> the reason.
    unreadable: dict[str, str] = field(default_factory=dict)


def add(reports: Iterable[Report]) -> Report:
    given = [asdict(each) for each in reports]
    counts = ("shards", "lines", "failed", "translated")
    return Report(
        **{name: sum(map(operator.itemgetter(name), given)) for name in counts},
        unreadable={path: reason for each in given for path, reason in each["unreadable"].items()},
    )


def split(file: BinaryIO, lines: int) -> Iterator[tuple[int, int, int]]:
    """Yields the bytes and lines before each chunk of a text, and its number of lines."""
    offset = first = 0
    found = _lines(file, _BLOCK)
    while sizes := [length for _, length in islice(found, lines)]:
        yield offset, first, len(sizes)
        offset = offset + sum(sizes)
        first = first + len(sizes)


def read_lines(file: BinaryIO, offset: int, lines: int, max_bytes: int) -> list[bytes | Failure]:
    """Returns the sentences of a chunk, and a `Failure` for each that has no translation."""
    file.seek(offset)
    found = enumerate(islice(_lines(file, max_bytes + _AROUND), lines))
    return [_sentence(*line, max_bytes, offset == number == 0) for number, line in found]


def _lines(file: BinaryIO, most: int) -> Iterator[tuple[bytes, int]]:
    """Yields the start of each line, at most `most` bytes, and the length of all of it."""
    while start := file.readline(most):
        part = start
        length = len(start)
        while part and not part.endswith(b"\n"):
            part = file.readline(_BLOCK)
            length += len(part)
        yield start, length


def _sentence(start: bytes, length: int, max_bytes: int, is_first: bool) -> bytes | Failure:
    sentence = (start.removeprefix(_BYTE_ORDER_MARK) if is_first else start).rstrip(b"\r\n")
    if length > len(start) or len(sentence) > max_bytes:
        return Failure(f"the line has {length} bytes; the limit is {max_bytes}")
    try:
        sentence.decode()
    except UnicodeDecodeError as error:
        return Failure(f"byte {error.start + 1} of the line is not UTF-8")
    return sentence


def write_chunk(file: BinaryIO, results: Sequence[bytes | Failure], run: str) -> None:
    """Writes a line of JSON with the failures and the run, then a line for each translation."""
    failed = [(i, each.reason) for i, each in enumerate(results) if isinstance(each, Failure)]
    file.write(json.dumps({"failed": failed, "run": run}).encode() + b"\n")
    file.writelines(text_of(each) + b"\n" for each in results)


def read_chunk(file: BinaryIO, chunk: Chunk, run: str) -> tuple[Report, list[dict[str, Any]]]:
    """Returns the report of a chunk for a run, and the lines that failed.

    The file is then at the first translation.
    """
    work = json.loads(file.readline())
    failed = [
        {"shard": chunk.shard.source, "line": chunk.first + 1 + i, "reason": reason}
        for i, reason in work["failed"]
    ]
    translated = chunk.lines - len(failed) if work.get("run") == run else 0
    return Report(lines=chunk.lines, failed=len(failed), translated=translated), failed


def summary(report: Report, already: int, seconds: float, failed: str) -> str:
    """Returns a sentence for the user.

    `already` shards were there before; `failed` is the path of the failed lines.
    """
    rate = report.translated / seconds if seconds else 0.0
    said = (
        f"shards written: {report.shards:,}, lines: {report.lines:,}, "
        f"translated: {report.translated:,} in {seconds:,.1f} s ({rate:,.1f} lines/s)"
    )
    if report.failed:
        said += f", failed: {report.failed:,}, see {failed}"
    if already:
        said += f"; shards already there: {already:,}"
    return said
