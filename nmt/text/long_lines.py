"""Splits lines that are too long to be translated as a whole, and joins the translations."""

import re
from collections.abc import Callable

# Dots of CJK too.
_SENTENCE_END = re.compile(
    rb"""(?:[.!?]|\xe2\x80\xa6)["')\]]*\s+|\xe3\x80\x82|\xef\xbc[\x81\x9f]"""
)
_SPACE = re.compile(rb"\s+")
_CHARACTER = re.compile(rb"(?<=.)(?=[\x00-\x7f\xc0-\xff])", re.DOTALL)


def split_line(line: bytes, fits: Callable[[bytes], bool]) -> list[bytes]:
    """Returns pieces that fit; together they are the line.

    A line is split near its middle: at the end of a sentence or else at a space in its middle half,
    or else between two characters. Halves that do not fit are split again. Single bytes are taken
    to fit.
    """
    if len(line) < 2 or fits(line):
        return [line]
    return [piece for half in halve(line) for piece in split_line(half, fits)]


def join_pieces(translations: list[str], pieces: list[bytes]) -> str:
    """Returns the joined translations of pieces, with a space where the line had one."""
    spaces = [" " if piece[-1:].isspace() else "" for piece in pieces[:-1]] + [""]
    return "".join(text + space for text, space in zip(translations, spaces, strict=True))


def halve(line: bytes) -> list[bytes]:
    """Returns both halves of a line of several bytes, split near its middle; see `split_line`."""
    quarter = max(len(line) // 4, 1)  # so that neither half is empty
    for pattern in (_SENTENCE_END, _SPACE):
        if ends := [found.end() for found in pattern.finditer(line, quarter, len(line) - quarter)]:
            middle = min(ends, key=lambda end: abs(2 * end - len(line)))
            break
    else:
        found = _CHARACTER.search(line, len(line) // 2)
        middle = found.start() if found else len(line) // 2
    return [line[:middle], line[middle:]]
