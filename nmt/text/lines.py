"""Reads lines of UTF-8, one sentence each, from files and streams; writes compressed files.

Only a line feed ends a line. Carriage returns before it and a byte order mark at the start of a
file are dropped. Every other character, NUL included, belongs to its line. Files whose names end in
`.gz` or `.zst` are compressed.
"""

import contextlib
import functools
import gzip
import hashlib
import io
import os
import re
import select
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, TextIO, TypeVar

from ..errors import UserError
from ..storage.cache import Cache
from ..storage.files import atomic_write

T = TypeVar("T")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CARRIAGE_RETURNS = re.compile(rb"\r+(?=\n)")
_PIECE = 1 << 20  # bytes that are read at a time
_PAUSE = 0.1  # seconds
_BEGINNING = 1 << 13  # bytes that decide whether a file is text
_FEW = 2  # strange characters that any text may have
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # NUL and others that no text is made of


def read_lines(*paths: Path, errors: str = "strict") -> Iterator[bytes]:
    """Yields the lines of files. Memory holds a part of one file.

    Args:
        errors: With `strict`, all bytes must be UTF-8. With `keep`, lines may have other bytes, but
            the beginning of a file must look like text.
    """
    for path in paths:
        for block in read_blocks(read_pieces(path), path, errors=errors):
            yield from block[:-1].split(b"\n")


def count_lines(path: Path, errors: str = "strict") -> int:
    """Returns the number of lines of a file, as `read_lines` reads it."""
    return sum(block.count(b"\n") for block in read_blocks(read_pieces(path), path, errors))


def read_blocks(
    pieces: Iterable[bytes | None], name: str | Path, errors: str = "strict"
) -> Iterator[bytes | None]:
    """Yields text in blocks of whole lines, each with a line feed at its end, and `None` for each
    `None`.

    Args:
        pieces: The text, cut anywhere. `None` is a pause of a stream.
    """
    lines = 0
    for block in _whole_lines(pieces):
        if block is not None:
            if errors == "strict":
                _require_lines(block, name, lines)
            elif not lines:
                _require_text(block[:_BEGINNING], name)
            lines += block.count(b"\n")
        yield block


def spread(items: Iterable[T], number: int, count: int | None) -> Iterator[T]:
    """Yields `count` of this number of items, evenly spread; `None` for all."""
    count = min(count or number, number)
    taken = 0
    for at, item in enumerate(items):
        if at == taken * number // count:
            yield item
            taken += 1


def _whole_lines(pieces: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """Yields blocks of lines, without byte order mark and carriage returns, and each `None`."""
    rest = []
    mark = _BYTE_ORDER_MARK
    for piece in pieces:
        if piece is None:
            yield None
        elif end := piece.rfind(b"\n") + 1:
            block = b"".join([*rest, piece[:end]]).removeprefix(mark)
            yield _CARRIAGE_RETURNS.sub(b"", block) if b"\r" in block else block
            rest = [piece[end:]]
            mark = b""
        else:
            rest.append(piece)
    if last := b"".join(rest):
        yield last.removeprefix(mark).rstrip(b"\r") + b"\n"


def _require_lines(block: bytes, name: str | Path, lines: int) -> None:
    """Refuses a block, after this many lines, that is not UTF-8 or has carriage returns for line
    feeds: the text would be one line.
    """
    try:
        block.decode()
    except UnicodeDecodeError as error:
        before = block[: error.start]
        number = lines + before.count(b"\n") + 1
        start = before.rfind(b"\n") + 1
        place = f"0x{block[error.start]:02x} in position {len(before) - start}"
        raise UserError(
            f"{name}, line {number} is not UTF-8: its byte {place} is wrong ({error.reason}); "
            "convert the file first"
        ) from None
    if not lines and block.count(b"\n") == 1 and block.count(b"\r") > 1:
        raise UserError(
            f"{name} ends its lines with carriage returns; convert it: tr '\\r' '\\n' < OLD > NEW"
        )


def read_chunks(source: int | Path, size: int) -> Iterator[list[bytes]]:
    """Yields the lines of a stream or a file in lists of `size`. The last is shorter.

    Args:
        source: The descriptor of a stream, where no data for a while ends a list too, or a file,
            which may be compressed.
    """
    lines = []
    is_stream = isinstance(source, int)
    pieces = _read_stream(source) if is_stream else read_pieces(source)
    for block in read_blocks(pieces, "the input" if is_stream else source, errors="keep"):
        lines += [] if block is None else block[:-1].split(b"\n")
        while len(lines) >= size or (lines and block is None):
            yield lines[:size]
            del lines[:size]
    if lines:
        yield lines


def _read_stream(descriptor: int) -> Iterator[bytes | None]:
    """Yields the data of a stream, and `None` when none has come for a while."""
    while True:
        if not select.select([descriptor], [], [], _PAUSE)[0]:
            yield None
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        yield data


def _require_text(beginning: bytes, name: str | Path) -> None:
    """Refuses data that do not begin like text: few control characters, mostly UTF-8."""
    text = beginning.decode(errors="replace")
    controls = len(beginning) - len(beginning.translate(None, _CONTROLS))
    for count, share, what in (
        (controls, 0.01, "control characters"),
        (text.count("\ufffd"), 0.1, "not UTF-8"),
    ):
        if count > _FEW and count > share * len(text):
            raise UserError(
                f"{name} is not text: {count} of its first {len(text)} characters are {what}; "
                "give a text file in UTF-8 (iconv converts other encodings)"
            )


def read_pieces(path: Path, size: int = _PIECE) -> Iterator[bytes]:
    """Yields a text in pieces of at most `size` bytes, decompressed if it is `.gz` or `.zst`."""
    lines = 0
    (open_file, damage) = _opener(path)
    try:
        with open_file(path, "rb") as file:
            while piece := file.read(size):
                yield piece
                lines += piece.count(b"\n")
    except damage as error:
        raise UserError(
            f"{path} is damaged or cut off after line {lines}: {error}; copy it again"
        ) from None


def _opener(path: Path) -> tuple[Callable[[Path, str], BinaryIO], tuple[type[Exception], ...]]:
    """Returns the function that opens a file, and what reading raises if the file is damaged."""
    if path.suffix == ".gz":
        return gzip.open, (EOFError, zlib.error, gzip.BadGzipFile)
    if path.suffix != ".zst":
        return open, ()
    zstd = _zstd(path)
    any_window = {zstd.DecompressionParameter.window_log_max: 31}  # as of `zstd --long=31`
    return functools.partial(zstd.open, options=any_window), (EOFError, zstd.ZstdError)


@contextlib.contextmanager
def replace_text(path: Path) -> Iterator[TextIO]:
    """Yields a file that replaces `path` when complete, compressed for `.gz` or `.zst`."""
    if path.suffix not in (".gz", ".zst"):
        with atomic_write(path) as text:
            text.reconfigure(line_buffering=True)
            yield text
        return
    zstd = _zstd(path) if path.suffix == ".zst" else None
    with atomic_write(path, "wb") as file:
        # The header of .gz gets no name, which would be that of the temporary file, and no time.
        packed = (
            zstd.ZstdFile(file, "w") if zstd else gzip.GzipFile("", "wb", fileobj=file, mtime=0)
        )
        with packed, io.TextIOWrapper(packed, "utf-8", newline="\n") as text:
            yield text


def _zstd(path: Path) -> ModuleType:
    try:
        from backports import zstd
    except ImportError:
        raise UserError(
            f"{path} needs the package backports.zstd; run pip install -e '.[zstd]'"
        ) from None
    return zstd


def content_digests(paths: Sequence[Path], cache: Cache) -> list[str]:
    """Returns the SHA-256 of the text in each file, decompressed.

    The cache remembers them until a file changes.
    """

    def digest(path: Path) -> str:
        sha = hashlib.sha256()
        for piece in read_pieces(path):
            sha.update(piece)
        return sha.hexdigest()

    return cache.digests(paths, digest)
