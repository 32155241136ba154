"""Lines of text: one sentence each, in UTF-8.

Only a line feed ends a line. Carriage returns before it and a byte order mark at the start of the text are dropped.
Every other character, NUL included, belongs to its line.
"""

import itertools
import os
import select
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ..errors import UserError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PAUSE = 0.1  # seconds


class TextFile:
    """The lines of a file by number. Memory holds only their offsets.

    Raises:
        UserError: There is no such regular file.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if not self.path.is_file():
            what = "is not a regular file and cannot be read twice" if self.path.exists() else "does not exist"
            raise UserError(f"the text {path} {what}; give a text file")
        with self.path.open("rb") as file:
            self._offsets = np.fromiter(itertools.accumulate(map(len, file), initial=0), np.int64)
            file.seek(0)
            if file.read(3) == _BYTE_ORDER_MARK:
                self._offsets[0] = 3
        self._descriptor = os.open(self.path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, line: int) -> bytes:
        start, end = int(self._offsets[line]), int(self._offsets[line + 1])
        found = os.pread(self._descriptor, end - start, start)
        if len(found) < end - start:
            raise UserError(f"{self.path} became shorter while it was being read; start again and leave the file alone")
        return found.rstrip(b"\r\n")

    def __iter__(self) -> Iterator[bytes]:
        """Yields the lines in order. This is faster than reading them by number."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                yield _sentence(line, number)


class ParallelText:
    """Two files whose lines translate each other.

    Raises:
        UserError: A file is missing, or the numbers of lines differ.
    """

    def __init__(self, source: str | os.PathLike, target: str | os.PathLike):
        self.source, self.target = TextFile(source), TextFile(target)
        if len(self.source) != len(self.target):
            raise UserError(
                f"{source} has {len(self.source)} lines and {target} has {len(self.target)}; "
                "line i of one must translate line i of the other"
            )

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(self.source, self.target, strict=True)

    def pairs(self, numbers: Iterable[int]) -> tuple[list[bytes], list[bytes]]:
        """Returns the source lines and the target lines with these numbers."""
        numbers = list(numbers)
        return [self.source[i] for i in numbers], [self.target[i] for i in numbers]

    def checked(self) -> "ParallelText":
        """Returns itself if it can be used for training or validation.

        Raises:
            UserError: The text is empty or not UTF-8.
        """
        if not len(self):
            raise UserError(f"{self.source.path} and {self.target.path} are empty")
        for text in (self.source, self.target):
            require_utf8(text.path)
        return self

    def shared_with(self, training: "ParallelText") -> int:
        """Returns how many pairs of this text are also in the training text. Memory holds only this text."""
        own = list(self)
        sources = {source for source, _ in own}
        found = {(source, training.target[i]) for i, source in enumerate(training.source) if source in sources}
        return sum(pair in found for pair in own)


def require_utf8(path: str | os.PathLike) -> None:
    """Checks that a file is UTF-8.

    Raises:
        UserError: A line is not UTF-8.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise UserError(f"{path}, line {number} is not UTF-8: {error}; convert the file first") from None


def read_chunks(descriptor: int, size: int) -> Iterator[list[bytes]]:
    """Yields the lines of a stream in lists of `size`. Yields a shorter list at the end and when the stream pauses."""
    chunk = []
    for line in _lines_and_pauses(descriptor):
        if line is not None:
            chunk.append(line)
        if len(chunk) == size or (line is None and chunk):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _lines_and_pauses(descriptor: int) -> Iterator[bytes | None]:
    """Yields every line of a stream, and `None` when no data has come for `_PAUSE` seconds."""
    numbers, rest = itertools.count(), bytearray()
    while True:
        if not select.select([descriptor], [], [], _PAUSE)[0]:
            yield None
        data = os.read(descriptor, 1 << 16)
        if not data:
            break
        rest += data
        if b"\n" in data:  # splitting after every read would copy a long line again and again
            *lines, rest = rest.split(b"\n")
            for line, number in zip(lines, numbers, strict=False):
                yield _sentence(bytes(line), number)
    if rest:
        yield _sentence(bytes(rest), next(numbers))


def _sentence(line: bytes, number: int) -> bytes:
    """Returns the sentence in a line; `number` counts from 0."""
    return (line.removeprefix(_BYTE_ORDER_MARK) if number == 0 else line).rstrip(b"\r\n")
