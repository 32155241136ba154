"""Lines of text: one sentence each, in UTF-8.

Only a line feed ends a line. Carriage returns before it and a byte order mark at the start of a file are dropped.
Every other character, NUL included, belongs to its line.
"""

import bisect
import functools
import hashlib
import itertools
import os
import select
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ..errors import UserError
from ..storage.cache import Cache, FileState, changed_while_read
from .scan import line_ends, read_blocks, scan
from .shards import COMPRESSED, Files, all_shards, read_pieces
from .threads import parallel_map

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PAUSE = 0.1  # seconds
_BEGINNING = 1 << 13  # bytes that decide whether a file is text
_FEW = 8  # strange characters that any text may have
_MOST_OPEN = 128  # files of a text that are open at a time


class Text:
    """The lines of one or several files by number.

    Args:
        files: A file or pattern, or several.
        cache: Keeps the results of the scan. With it, the files may be compressed and must be UTF-8. Without it,
            memory holds the positions of all lines.

    Attributes:
        paths: The files, in order.
        starts: Number of the first line of each file, and of all lines.

    Raises:
        UserError: A file is missing, damaged or not UTF-8.
    """

    def __init__(self, files: Files, cache: Cache | None = None):
        self.paths, self._cache = all_shards(files), cache
        self._plain, self._digests, self._states = _scan(self.paths, cache) if cache else _unscanned(self.paths)
        self._ends = self._derive("lines", self._line_ends)
        self._bases = np.cumsum([0, *(state.size for state in self._states)]).tolist()
        if self._bases[-1] != self._ends[-1]:
            raise UserError(f"{self} changed while it was being read; start again and leave it alone")
        self.starts = np.searchsorted(self._ends, self._bases).tolist()
        self._opened = functools.lru_cache(_MOST_OPEN)(functools.partial(_Opened, self._plain, self._states))
        for shard in range(min(len(self.paths), _MOST_OPEN)):
            self._opened(shard)

    def __str__(self) -> str:
        return f"{self.paths[0]}" + (f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else "")

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, line: int) -> bytes:
        start, end = int(self._ends[line]), int(self._ends[line + 1])
        shard = bisect.bisect_right(self._bases, start) - 1
        return _sentence(self._opened(shard).read(start - self._bases[shard], end - start), line - self.starts[shard])

    def __iter__(self) -> Iterator[bytes]:
        """Yields the lines in order. This is faster than reading them by number."""
        return itertools.chain.from_iterable(map(self._lines, range(len(self.paths))))

    def derive(self, name: str, make: Callable[[Iterator[bytes], int], np.ndarray]) -> np.ndarray:
        """Returns an array with one entry for each line. The cache keeps it under this name.

        Args:
            name: Name of the array, which stands for all that it depends on besides the text.
            make: Maps the lines of one file and their number to its part of the array.
        """
        return self._derive(name, lambda shard: make(self._lines(shard), self.starts[shard + 1] - self.starts[shard]))

    @property
    def digest(self) -> str:
        """SHA-256 of the text; of several files, that of their digests."""
        first, *others = self._digests
        return hashlib.sha256("".join(self._digests).encode()).hexdigest() if others else first

    def _lines(self, shard: int) -> Iterator[bytes]:
        with self._plain[shard].open("rb") as file:
            _require_state(file.fileno(), self._states[shard], self._plain[shard])
            for number, line in enumerate(file):
                yield _sentence(line, number)
            _require_state(file.fileno(), self._states[shard], self._plain[shard])

    def _line_ends(self, shard: int) -> np.ndarray:
        if self._cache:
            return line_ends(self._plain[shard], self.paths[shard])
        with self.paths[shard].open("rb") as file:
            return np.fromiter(itertools.accumulate(map(len, file), initial=0), np.int64)

    def _derive(self, name: str, make: Callable[[int], np.ndarray]) -> np.ndarray:
        """Returns the arrays of all files as one."""

        def checked(shard: int) -> np.ndarray:
            made = make(shard)
            if FileState.of(self._plain[shard]) != self._states[shard]:  # the cache would keep it as this digest's
                raise changed_while_read(self._plain[shard])
            return made

        def of_shard(shard: int) -> np.ndarray:
            if self._cache is None:
                return make(shard)
            return self._cache.array(f"{self._digests[shard]}-{name}", lambda: checked(shard))

        def joined() -> np.ndarray:
            arrays = [np.array(of_shard(shard)) for shard in range(len(self.paths))]  # copies: a map keeps a file open
            return _join_ends(arrays) if name == "lines" else np.concatenate(arrays)

        if len(self.paths) == 1:
            return of_shard(0)
        return self._cache.array(f"{self.digest}-{name}", joined) if self._cache else joined()


class _Opened:
    """A file that is open for reading at any position, if it is still the one with this state."""

    def __init__(self, paths: list[Path], states: list[FileState], shard: int):
        self._path, self._state = paths[shard], states[shard]
        self._descriptor = os.open(self._path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        _require_state(self._descriptor, self._state, self._path)

    def read(self, start: int, size: int) -> bytes:
        found = os.pread(self._descriptor, size, start)
        if len(found) < size:
            raise UserError(
                f"{self._path} became shorter while it was being read; start again and leave the file alone"
            )
        _require_state(self._descriptor, self._state, self._path)
        return found


def stream_lines(paths: Iterable[Path]) -> Iterator[bytes]:
    """Yields the lines of files of UTF-8, which may be compressed. Memory holds a part of one file."""
    for path in paths:
        numbers = itertools.count()
        for block in read_blocks(read_pieces(path), path):
            lines = block.removesuffix(b"\n").split(b"\n")
            for line, number in zip(lines, numbers, strict=False):
                yield _sentence(line, number)


def read_chunks(source: int | Path, size: int) -> Iterator[list[bytes]]:
    """Yields the lines of a stream or a file in lists of `size`. The last is shorter.

    Args:
        source: The descriptor of a stream, where no data for a while ends a list too, or a file, which may be
            compressed.
        size: Lines in a list.

    Raises:
        UserError: The beginning is not text, or the file is damaged.
    """
    chunk = []
    stream = isinstance(source, int)
    for line in _lines_and_pauses(_read(source) if stream else read_pieces(source), "the input" if stream else source):
        if line is not None:
            chunk.append(line)
        if len(chunk) == size or (line is None and chunk):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def file_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, which may be compressed and need not be UTF-8.

    Raises:
        UserError: The file is damaged, or its beginning is not text.
    """
    return filter(lambda line: line is not None, _lines_and_pauses(read_pieces(path), path))


def _read(descriptor: int) -> Iterator[bytes | None]:
    """Yields the data of a stream, and `None` when none has come for a while."""
    while True:
        if not select.select([descriptor], [], [], _PAUSE)[0]:
            yield None
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        yield data


def _lines_and_pauses(blocks: Iterable[bytes | None], name: str | Path) -> Iterator[bytes | None]:
    """Yields every line in blocks of data, and `None` for each block that is `None`."""
    numbers, rest, begun = itertools.count(), bytearray(), False
    for data in blocks:
        if data is None:
            yield None
            continue
        begun = begun or _require_text(data[:_BEGINNING], name)
        rest += data
        if b"\n" in data:  # splitting after every read would copy a long line again and again
            *lines, rest = rest.split(b"\n")
            for line, number in zip(lines, numbers, strict=False):
                yield _sentence(bytes(line), number)
    if rest:
        yield _sentence(bytes(rest), next(numbers))


def _require_text(beginning: bytes, name: str | Path) -> bool:
    """Returns true if data begin like text: few NUL bytes, and mostly UTF-8.

    Raises:
        UserError: They do not.
    """
    text = beginning.decode(errors="replace")
    for count, share, what in ((beginning.count(0), 0.01, "NUL"), (text.count("\ufffd"), 0.1, "not UTF-8")):
        if count > _FEW and count > share * len(text):
            raise UserError(
                f"{name} is not text: {count} of its first {len(text)} characters are {what}; "
                "give a text file in UTF-8 (iconv converts other encodings)"
            )
    return True


def _sentence(line: bytes, number: int) -> bytes:
    """Returns the sentence in a line; `number` counts from 0 in its file."""
    return (line.removeprefix(_BYTE_ORDER_MARK) if number == 0 else line).rstrip(b"\r\n")


def _require_state(descriptor: int, state: FileState, path: Path) -> None:
    """Checks that an open file is the one with this state, unchanged."""
    if not FileState.of(descriptor).same_content(state):
        raise changed_while_read(path)


def _unscanned(paths: list[Path]) -> tuple[list[Path], list[str], list[FileState]]:
    """Returns what `_scan` does, with empty digests. Files must not be compressed."""
    for path in paths:
        if path.suffix in COMPRESSED:
            raise UserError(f"{path} is compressed, and lines of compressed files cannot be read by number; unpack it")
    return paths, [""] * len(paths), [FileState.of(path) for path in paths]


def _scan(paths: list[Path], cache: Cache) -> tuple[list[Path], list[str], list[FileState]]:
    """Scans files on all cores. Returns plain files with their text, their digests and their states."""
    compressed = any(path.suffix in COMPRESSED for path in paths)  # of unknown size
    size = None if compressed else sum(path.stat().st_size for path in paths)
    with tqdm(total=size, unit="B", unit_scale=True, desc=f"reading {paths[0].name}", delay=5, leave=False) as bar:
        found = list(parallel_map(lambda path: scan(path, cache, bar.update), paths))
    return tuple(map(list, zip(*found, strict=True)))


def _join_ends(ends: list[np.ndarray]) -> np.ndarray:
    """Returns the positions after the lines of all files, as if they were one."""
    bases = np.cumsum([0, *(each[-1] for each in ends)])
    return np.concatenate([[0], *(each[1:] + base for each, base in zip(ends, bases, strict=False))])
