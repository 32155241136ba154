"""Lines that are too long to be translated at once: where they are split."""

import re
from collections.abc import Callable

_SENTENCE_END = re.compile(rb"""(?:[.!?]|\xe2\x80\xa6)["')\]]*\s+|\xe3\x80\x82|\xef\xbc[\x81\x9f]""")  # dots of CJK too
_SPACE = re.compile(rb"\s+")
_CHARACTER = re.compile(rb"(?<=.)(?=[\x00-\x7f\xc0-\xff])", re.DOTALL)


def split_line(line: bytes, fits: Callable[[bytes], bool]) -> list[bytes]:
    """Returns pieces that fit; together they are the line.

    A line is split near its middle: at the end of a sentence or else at a space in its middle half, or else between two
    characters. Halves that do not fit are split again.
    """
    if len(line) < 2 or fits(line):
        return [line]
    middle = _middle(line)
    return split_line(line[:middle], fits) + split_line(line[middle:], fits)


def join_pieces(translations: list[str], pieces: list[bytes]) -> str:
    """Returns the joined translations of pieces, with a space where the line had one."""
    spaces = [" " if piece[-1:].isspace() else "" for piece in pieces[:-1]] + [""]
    return "".join(text + space for text, space in zip(translations, spaces, strict=True))


def _middle(line: bytes) -> int:
    quarter = len(line) // 4
    for pattern in (_SENTENCE_END, _SPACE):
        ends = [found.end() for found in pattern.finditer(line, quarter, len(line) - quarter)]
        if ends:
            return min(ends, key=lambda end: abs(2 * end - len(line)))
    found = _CHARACTER.search(line, len(line) // 2)
    return found.start() if found else len(line) // 2
