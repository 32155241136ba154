"""Chunks of lines, which are sorted by length and translated or scored in batches, and what is said of some lines."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..decoding.options import DecodingOptions
from ..decoding.side_by_side import workers
from .arguments import say

_BATCHES_PER_WORKER = 20
_NAMED = 10  # lines that a message names


def chunk_size(options: DecodingOptions) -> int:
    """Returns how many lines are read at a time."""
    return _BATCHES_PER_WORKER * workers() * options.batch_size


def chunked(items: Iterable, size: int) -> Iterator[list]:
    """Yields items in lists of `size`; the last may be shorter."""
    items = iter(items)
    while chunk := list(itertools.islice(items, size)):
        yield chunk


def number_list(numbers: list[int]) -> str:
    """Returns `line 3` or `lines 3, 5, 8`, with at most ten numbers."""
    named = ", ".join(map(str, numbers[:_NAMED]))
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"line{'s' if len(numbers) > 1 else ''} {named}{more}"


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
