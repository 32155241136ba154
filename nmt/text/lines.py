"""Lines of text: UTF-8, one sentence each, ended by a line feed; a carriage return before it is dropped.

A byte order mark at the beginning of a text is dropped. Every other character, NUL included, belongs to its line.
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
_PAUSE = 0.1  # seconds without a new line after which those there are worked on


class TextFile:
    """The lines of a file, by number, without holding them in memory.

    Raises:
        UserError: There is no such regular file.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if not self.path.is_file():
            what = "is no regular file, and it is read more than once" if self.path.exists() else "is not there"
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
            raise UserError(f"{self.path} became shorter while it was in use; begin again with a file that stays")
        return found.rstrip(b"\r\n")

    def __iter__(self) -> Iterator[bytes]:
        """Yields the lines in order, as is faster than by number."""
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
        """Returns the source and the target lines of these numbers."""
        numbers = list(numbers)
        return [self.source[i] for i in numbers], [self.target[i] for i in numbers]

    def checked(self) -> "ParallelText":
        """Returns itself if one can train on it or validate with it.

        Raises:
            UserError: It is empty, or not UTF-8.
        """
        if not len(self):
            raise UserError(f"{self.source.path} and {self.target.path} are empty")
        for text in (self.source, self.target):
            require_utf8(text.path)
        return self

    def shared_with(self, training: "ParallelText") -> int:
        """Returns how many pairs of this text are in another, longer one."""
        own = list(self)
        sources = {source for source, _ in own}
        found = {(source, training.target[i]) for i, source in enumerate(training.source) if source in sources}
        return sum(pair in found for pair in own)


def require_utf8(path: str | os.PathLike) -> None:
    """Reads a file.

    Raises:
        UserError: A line is not UTF-8.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise UserError(f"{path}, line {number} is not UTF-8: {error}; convert the file first") from None


def read_portions(descriptor: int, most: int) -> Iterator[list[bytes]]:
    """Yields the lines of a stream in lists of at most `most`, each without waiting long for more.

    Those of a file are all of `most` lines but the last.
    """
    numbers, lines, rest = itertools.count(), [], bytearray()
    while True:
        arriving = not lines or select.select([descriptor], [], [], _PAUSE)[0]
        data = os.read(descriptor, 1 << 16) if arriving else b""
        rest += data
        if b"\n" in data:
            *whole, rest = rest.split(b"\n")
            lines += [_sentence(bytes(line), number) for line, number in zip(whole, numbers, strict=False)]
        ended = arriving and not data
        if ended and rest:
            lines.append(_sentence(bytes(rest), next(numbers)))
        while len(lines) >= most or (lines and (ended or not arriving)):
            yield lines[:most]
            del lines[:most]
        if ended:
            return


def _sentence(line: bytes, number: int) -> bytes:
    """Returns what a line says, given its bytes and its number from 0."""
    return (line.removeprefix(_BYTE_ORDER_MARK) if number == 0 else line).rstrip(b"\r\n")
