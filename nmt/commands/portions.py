"""Portions of lines: sentences are sorted by length within one portion, then cut into batches."""

from collections.abc import Callable, Iterator
from typing import Any

from .options import say

BATCHES = 20  # in a portion


def counting_bad_bytes(portions: Iterator[list], text: Callable[[Any], bytes] = bytes) -> Iterator[list]:
    """Passes portions on. At the end it warns of items that are not UTF-8.

    Args:
        portions: Lists of items.
        text: Returns the bytes of an item.
    """
    seen, bad = 0, []
    for portion in portions:
        for number, item in enumerate(portion, seen + 1):
            try:
                text(item).decode()
            except UnicodeDecodeError:
                bad.append(number)
        seen += len(portion)
        yield portion
    if bad:
        verb = "is" if len(bad) == 1 else "are"
        say(
            f"warning: {len(bad)} of {seen} lines {verb} not UTF-8 (the first: line {bad[0]}); "
            "their bad bytes were read as unknown words"
        )
