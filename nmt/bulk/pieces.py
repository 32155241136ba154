"""Shards, the pieces that they are translated in, and the files of translated pieces."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from .lines import Extent, Fault

FOLDER = "_bulk"  # in the output folder; Spark and Hadoop ignore names that begin like this


def pieces_folder(output: str) -> str:
    """Returns the folder of all translated pieces of an output folder."""
    return f"{output}/{FOLDER}/pieces"


def records_folder(output: str) -> str:
    """Returns the folder that says of which text each translation of an output folder is."""
    return f"{output}/{FOLDER}/texts"


def failed_folder(output: str) -> str:
    """Returns the folder with the lines of an output folder that have no translation."""
    return f"{output}/{FOLDER}/failed"


@dataclass(frozen=True)
class Shard:
    """A text to translate, and where its translation goes.

    Attributes:
        source: Path of the text.
        state: Stands for its content: its size and when it was written.
        name: Name of the translation.
        output: The output folder.
    """

    source: str
    state: str
    name: str
    output: str

    @property
    def target(self) -> str:
        return f"{self.output}/{self.name}"

    @property
    def digest(self) -> str:
        """Stands for the text: its path and its state."""
        return hashlib.sha256(f"{self.state} {self.source}".encode()).hexdigest()[:16]

    @property
    def record(self) -> str:
        """File that says of which text the translation is. Its name stands for both."""
        return f"{records_folder(self.output)}/{self.name}.{self.digest}.json"

    @property
    def records(self) -> str:
        """Pattern of such files for any text."""
        return f"{records_folder(self.output)}/{self.name}.{'?' * len(self.digest)}.json"

    @property
    def pieces(self) -> str:
        """Folder of the translated pieces."""
        return f"{pieces_folder(self.output)}/{self.name}"

    @property
    def failed(self) -> str:
        """File with the lines that have no translation."""
        return f"{failed_folder(self.output)}/{self.name}.jsonl"


@dataclass(frozen=True)
class Piece:
    """Consecutive lines of a shard."""

    shard: Shard
    extent: Extent

    @property
    def path(self) -> str:
        """File of the translations. Its name stands for the text of the shard and the lines."""
        return f"{self.shard.pieces}/{self.shard.digest}.{self.extent.first}.{self.extent.lines}"


@dataclass(frozen=True)
class Work:
    """What the translation of a piece took.

    Attributes:
        began: Time when it began, in seconds since 1970.
        ended: Time when the model was done.
        model_seconds: Time in the model.
    """

    began: float
    ended: float
    model_seconds: float


@dataclass(frozen=True)
class Outcome:
    """A translated piece.

    Attributes:
        piece: The piece.
        failed: Position in the piece and reason of each line that has no translation.
        work: What it took.
    """

    piece: Piece
    failed: tuple[tuple[int, str], ...]
    work: Work


def failures(results: Iterable[bytes | Fault]) -> tuple[tuple[int, str], ...]:
    """Returns position and reason of each fault."""
    return tuple((i, each.reason) for i, each in enumerate(results) if isinstance(each, Fault))


def write_piece(file: BinaryIO, results: Sequence[bytes | Fault], work: Work) -> None:
    """Writes a line of JSON that `read_outcome` reads, then the translations; a fault becomes an empty line."""
    file.write(json.dumps({"failed": failures(results), "work": asdict(work)}).encode() + b"\n")
    file.writelines((b"" if isinstance(each, Fault) else each) + b"\n" for each in results)


def read_outcome(file: BinaryIO, piece: Piece) -> Outcome:
    """Returns the outcome that is in the file of a piece. The file is then at its first translation."""
    found = json.loads(file.readline())
    return Outcome(piece, tuple((index, reason) for index, reason in found["failed"]), Work(**found["work"]))


def in_order(outcomes: Iterable[Outcome], lines: int) -> list[Outcome]:
    """Returns the outcomes of a shard that has `lines` lines, in the order of their lines.

    Raises:
        RuntimeError: A line is in none of them, or in two.
    """
    found = sorted(outcomes, key=lambda outcome: outcome.piece.extent.first)
    expected = 0
    for extent in (outcome.piece.extent for outcome in found):
        if extent.first != expected:
            raise RuntimeError(f"a piece begins at line {extent.first + 1} where line {expected + 1} is due")
        expected += extent.lines
    if expected != lines:
        raise RuntimeError(f"the pieces have {expected} lines and the shard {lines}")
    return found


def failed_lines(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Returns shard, number (from 1) and reason of each line that has no translation."""
    return [
        {"shard": each.piece.shard.source, "line": each.piece.extent.first + index + 1, "reason": reason}
        for each in outcomes
        for index, reason in each.failed
    ]
