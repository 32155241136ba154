"""Lines of a shard: where its pieces begin, and which lines can be translated.

Only a line feed ends a line. Carriage returns before it and a byte order mark at the start of a shard are dropped.
"""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from .model import Fault

_BLOCK = 1 << 20  # bytes
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_AROUND = len(_BYTE_ORDER_MARK + b"\r\n")  # bytes that may surround a sentence


def split(file: BinaryIO, lines: int) -> Iterator[tuple[int, int, int]]:
    """Yields the bytes and lines before each piece of a text, and its number of lines: `lines`, or the rest."""
    offset = first = 0
    found = _lines(file, _BLOCK)
    while sizes := [length for _, length in islice(found, lines)]:
        yield offset, first, len(sizes)
        offset, first = offset + sum(sizes), first + len(sizes)


def read_lines(file: BinaryIO, offset: int, lines: int, max_bytes: int) -> list[bytes | Fault]:
    """Returns the sentences of a piece, and a fault for each line that cannot be translated."""
    file.seek(offset)
    found = enumerate(islice(_lines(file, max_bytes + _AROUND), lines))
    return [_sentence(*line, max_bytes, offset == number == 0) for number, line in found]


def _lines(file: BinaryIO, most: int) -> Iterator[tuple[bytes, int]]:
    """Yields the start of each line, at most `most` bytes, and the length of all of it, which may not fit in memory."""
    while start := file.readline(most):
        part, length = start, len(start)
        while part and not part.endswith(b"\n"):
            part = file.readline(_BLOCK)
            length += len(part)
        yield start, length


def _sentence(start: bytes, length: int, max_bytes: int, is_first: bool) -> bytes | Fault:
    sentence = (start.removeprefix(_BYTE_ORDER_MARK) if is_first else start).rstrip(b"\r\n")
    if length > len(start) or len(sentence) > max_bytes:
        return Fault(f"the line has {length} bytes; the limit is {max_bytes}")
    try:
        sentence.decode()
    except UnicodeDecodeError as error:
        return Fault(f"byte {error.start + 1} of the line is not UTF-8")
    return sentence
