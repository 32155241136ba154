"""Lines of a shard: where its pieces begin, and which lines can be translated.

Only a line feed ends a line. Carriage returns before it and a byte order mark at the start of a shard are dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_BLOCK = 1 << 20  # bytes
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_AROUND = len(_BYTE_ORDER_MARK + b"\r\n")  # bytes that may surround a sentence


@dataclass(frozen=True)
class Extent:
    """Consecutive lines of a shard.

    Attributes:
        offset: Bytes before them in the decompressed text.
        size: Their bytes.
        first: Lines before them.
        lines: Their number.
    """

    offset: int
    size: int
    first: int
    lines: int


@dataclass(frozen=True)
class Fault:
    """Takes the place of a line, or of its translation, and says why there is none."""

    reason: str


class ChangedError(Exception):
    """A shard changed after its lines were counted."""


def split(file: BinaryIO, lines: int) -> Iterator[Extent]:
    """Yields the extents of a text. Each has `lines` lines, the last one perhaps fewer."""
    offset = first = counted = position = 0
    ended = True  # the text so far ends with a line feed
    while block := file.read(_BLOCK):
        start = 0
        while counted + (count := block.count(b"\n", start)) >= lines:
            for _ in range(lines - counted):
                start = block.index(b"\n", start) + 1
            yield Extent(offset, position + start - offset, first, lines)
            offset, first, counted = position + start, first + lines, 0
        counted += count
        position += len(block)
        ended = block.endswith(b"\n")
    if position > offset:
        yield Extent(offset, position - offset, first, counted + (not ended))


def read_lines(file: BinaryIO, extent: Extent, max_bytes: int) -> list[bytes | Fault]:
    """Returns the sentences of an extent, and a fault for each line that cannot be translated.

    A line that is too long is not held in memory.

    Raises:
        ChangedError: The extent no longer has its number of lines.
    """
    file.seek(extent.offset)
    found, left = [], extent.size
    while left:
        line = part = file.readline(min(left, max_bytes + _AROUND))
        length = len(line)
        while part and not part.endswith(b"\n") and length < left:
            part = file.readline(min(left - length, _BLOCK))
            length += len(part)
        if not part:
            break
        left -= length
        found.append(_sentence(line, length, max_bytes, first=extent.offset == 0 and not found))
    if left or len(found) != extent.lines:
        raise ChangedError(f"line {extent.first + 1} and those after it changed while they were read")
    return found


def _sentence(line: bytes, length: int, max_bytes: int, first: bool) -> bytes | Fault:
    """Returns the sentence in a line of `length` bytes that begins with `line`."""
    sentence = (line.removeprefix(_BYTE_ORDER_MARK) if first else line).rstrip(b"\r\n")
    if length > len(line) or len(sentence) > max_bytes:
        return Fault(f"the line has {length} bytes; the limit is {max_bytes}")
    try:
        sentence.decode()
    except UnicodeDecodeError as error:
        return Fault(f"byte {error.start + 1} of the line is not UTF-8")
    return sentence
