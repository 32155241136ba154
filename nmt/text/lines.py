"""Lines of text: one sentence each, in UTF-8.

Only a line feed ends a line. Carriage returns before it and a byte order mark at the start of a file are dropped.
Every other character, NUL included, belongs to its line. Files that end in `.gz` or `.zst` are decompressed.
"""

import gzip
import hashlib
import itertools
import os
import re
import select
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import UserError
from ..storage.cache import Cache

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CARRIAGE_RETURNS = re.compile(rb"\r+(?=\n)")
_PIECE = 1 << 20  # bytes that are read at a time
_PAUSE = 0.1  # seconds
_BEGINNING = 1 << 13  # bytes that decide whether a file is text
_FEW = 8  # strange characters that any text may have
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # NUL and others that no text is made of


def read_blocks(pieces: Iterable[bytes], name: Path, size: int = 0) -> Iterator[bytes]:
    """Yields text in blocks of whole lines, each with a line feed at its end.

    Args:
        pieces: The text, cut anywhere.
        name: What users call it.
        size: If given, a block ends at the first end of a line after this many bytes. The last may be smaller.

    Raises:
        UserError: A line is not UTF-8.
    """
    held = b""
    for block in _whole_lines(pieces, name):
        held, start = held + block, 0
        while size and (end := held.find(b"\n", start + size - 1) + 1):
            yield held[start:end]
            start = end
        held = held[start:]
        if not size:
            yield held
            held = b""
    if held:
        yield held


def stream_lines(paths: Iterable[Path]) -> Iterator[bytes]:
    """Yields the lines of files of UTF-8. Memory holds a part of one file.

    Raises:
        UserError: A file is damaged or not UTF-8.
    """
    for path in paths:
        for block in read_blocks(read_pieces(path), path):
            yield from block[:-1].split(b"\n")


def count_lines(path: Path) -> int:
    """Returns the number of lines of a file of UTF-8.

    Raises:
        UserError: The file is damaged or not UTF-8.
    """
    return sum(block.count(b"\n") for block in read_blocks(read_pieces(path), path))


def _whole_lines(pieces: Iterable[bytes], name: Path) -> Iterator[bytes]:
    """Yields lines in blocks as they come, without byte order mark and carriage returns."""
    lines = 0
    for raw in _up_to_line_ends(pieces):
        _require_utf8(raw, name, lines)
        block = raw if raw.endswith(b"\n") else raw + b"\n"
        block = block if lines else block.removeprefix(_BYTE_ORDER_MARK)
        yield _CARRIAGE_RETURNS.sub(b"", block) if b"\r" in block else block
        lines += raw.count(b"\n")


def _up_to_line_ends(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields pieces that are cut where a line ends; the last may have no line feed."""
    rest = []
    for piece in pieces:
        if end := piece.rfind(b"\n") + 1:
            yield b"".join([*rest, piece[:end]])
            rest = []
            piece = piece[end:]
        rest.append(piece)
    if last := b"".join(rest):
        yield last


def _require_utf8(block: bytes, name: Path, lines: int) -> None:
    """Checks a block that follows this many lines."""
    try:
        block.decode()
    except UnicodeDecodeError as first:
        number = block.count(b"\n", 0, first.start)
        try:
            block.split(b"\n")[number].decode()
        except UnicodeDecodeError as error:
            where = f"{name}, line {lines + number + 1}"
            raise UserError(f"{where} is not UTF-8: {error}; convert the file first") from None


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
    """Returns true if data begin like text, with few control characters and mostly UTF-8; else raises `UserError`."""
    text = beginning.decode(errors="replace")
    controls = len(beginning) - len(beginning.translate(None, _CONTROLS))
    for count, share, what in ((controls, 0.01, "control characters"), (text.count("\ufffd"), 0.1, "not UTF-8")):
        if count > _FEW and count > share * len(text):
            raise UserError(
                f"{name} is not text: {count} of its first {len(text)} characters are {what}; "
                "give a text file in UTF-8 (iconv converts other encodings)"
            )
    return True


def _sentence(line: bytes, number: int) -> bytes:
    """Returns the sentence in a line; `number` counts from 0 in its file."""
    return (line.removeprefix(_BYTE_ORDER_MARK) if number == 0 else line).rstrip(b"\r\n")


def read_pieces(path: Path, size: int = _PIECE) -> Iterator[bytes]:
    """Yields the text in a file, read `size` bytes at a time, and decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        UserError: The file is damaged or truncated, or reading it needs another package.
    """
    lines = 0
    try:
        for piece in (_zstandard if path.suffix == ".zst" else _bytes)(path, size):
            yield piece
            lines += piece.count(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile, _Damaged) as error:
        raise UserError(f"{path} is damaged or cut off after line {lines}: {error}; copy it again") from None


def content_digests(paths: Sequence[Path], cache: Cache) -> list[str]:
    """Returns the SHA-256 of the text in each file, decompressed. The cache remembers them until a file changes."""

    def digest(path: Path) -> str:
        sha = hashlib.sha256()
        for piece in read_pieces(path):
            sha.update(piece)
        return sha.hexdigest()

    return cache.digests(paths, digest)


class _Damaged(Exception):
    """What a reader raises for a damaged file."""


def _bytes(path: Path, size: int) -> Iterator[bytes]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        while piece := file.read(size):
            yield piece


def _zstandard(path: Path, size: int) -> Iterator[bytes]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise UserError(f"{path} needs the package zstandard; run pip install -e '.[zstd]'") from None
    frame = None
    for data in _bytes(path, size):
        while data:
            frame = frame or zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()
            try:
                piece = frame.decompress(data)
            except zstandard.ZstdError as error:
                raise _Damaged(error) from None
            if piece:
                yield piece
            data = b""
            if frame.eof:
                data, frame = frame.unused_data, None
    if frame:
        raise _Damaged("the compressed data end too early")
