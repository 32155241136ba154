"""Chunks of lines. The sentences of a chunk are sorted by length and split into batches."""

from collections.abc import Callable, Iterator
from typing import Any

from .arguments import say

BATCHES_PER_CHUNK = 20


def warn_of_invalid_utf8(chunks: Iterator[list], text: Callable[[Any], bytes] = bytes) -> Iterator[list]:
    """Yields the chunks unchanged, then warns of items that are not UTF-8.

    Args:
        chunks: Lists of items.
        text: Returns the bytes of an item.
    """
    seen, bad = 0, []
    for chunk in chunks:
        for number, item in enumerate(chunk, seen + 1):
            try:
                text(item).decode()
            except UnicodeDecodeError:
                bad.append(number)
        seen += len(chunk)
        yield chunk
    if bad:
        verb = "is" if len(bad) == 1 else "are"
        say(
            f"warning: {len(bad)} of {seen} lines {verb} not UTF-8 (the first: line {bad[0]}); "
            "their invalid bytes were read as unknown words"
        )
