"""Chunks of a text have each line once, and a line that cannot be translated says why."""

import io
import random

import pytest

from nmt.bulk.chunks import read_lines, split
from nmt.bulk.model import Failure


class InBlocks(io.BytesIO):
    """A file that returns fewer bytes than it is asked for, as those of object stores do."""

    def __init__(self, text, block):
        super().__init__(text)
        self._block = block

    def readline(self, size):
        return super().readline(min(size, self._block))


def chunks_of(text, lines, max_bytes=100, block=1000):
    found = []
    before = 0
    for offset, first, count in split(InBlocks(text, block), lines):
        assert first == before
        found.append(read_lines(io.BytesIO(text), offset, count, max_bytes))
        before += count
    return found


@pytest.mark.parametrize(
    "text, lines", [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2)]
)
def test_only_a_line_feed_ends_a_line(text, lines):
    for size in (1, 2, 3):
        found = chunks_of(text, size)
        assert [len(chunk) for chunk in found] == [
            min(size, lines - start) for start in range(0, lines, size)
        ]


def test_every_line_is_in_one_chunk_in_order():
    """Chunks and blocks of many sizes; lines of many lengths, some of them empty."""
    draw = random.Random(1)
    for _ in range(300):
        lines = [
            b"x" * draw.choice([0, 0, 1, 5, 30]) + str(i).encode()
            for i in range(draw.randrange(30))
        ]
        text = b"\n".join(lines) + b"\n" * (bool(lines) and draw.random() < 0.7)
        size = draw.randrange(1, 12)
        found = chunks_of(text, size, block=draw.randrange(1, 40))
        assert all(len(chunk) == size for chunk in found[:-1])
        assert [line for chunk in found for line in chunk] == lines


def test_a_mark_and_carriage_returns_are_dropped():
    text = b"\xef\xbb\xbfa\r\n\xef\xbb\xbfb\n\x00\xe2\x80\xa8c\r"
    for size in (1, 2, 3):
        lines = [line for chunk in chunks_of(text, size) for line in chunk]
        assert lines == [b"a", b"\xef\xbb\xbfb", b"\x00\xe2\x80\xa8c"]


def test_lines_that_cannot_be_translated_say_why():
    text = b"a\xffb\n" + b"c" * 10 + b"\n" + b"d" * 11 + b"\r\n" + b"e" * 5_000_000 + b"\nf"
    for size in (1, 3, 9):
        found = [line for chunk in chunks_of(text, size, max_bytes=10) for line in chunk]
        assert found == [
            Failure("byte 2 of the line is not UTF-8"),
            b"c" * 10,
            Failure("the line has 13 bytes; the limit is 10"),
            Failure("the line has 5000001 bytes; the limit is 10"),
            b"f",
        ]
