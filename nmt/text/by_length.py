"""Batches of items of similar length, with the results in the original order."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any


def map_by_length(
    function: Callable[[list], Iterable],
    chunks: Iterable[Sequence],
    batch_size: int,
    length: Callable[[Any], int] = len,
) -> Iterator:
    """Applies a function to batches of items of similar length.

    Args:
        function: Maps a list of at most `batch_size` items to their results.
        chunks: Lists of items, lines or tuples of lines. Each is sorted by length and split into batches.
        batch_size: Number of items in a batch.
        length: Returns the length of an item.

    Yields:
        The result of each item, in the order of the items.
    """
    for chunk in chunks:
        by_length = sorted(range(len(chunk)), key=lambda number: length(chunk[number]))
        results = [None] * len(chunk)
        for numbers in chunked(by_length, batch_size):
            found = function([chunk[number] for number in numbers])
            for number, result in zip(numbers, found, strict=True):
                results[number] = result
        yield from results


def chunked(items: Iterable, size: int) -> Iterator[list]:
    """Yields items in lists of `size`; the last may be shorter."""
    items = iter(items)
    while chunk := list(itertools.islice(items, size)):
        yield chunk


def pair_length(pair: tuple[bytes, bytes]) -> int:
    """Returns the length of the longer side."""
    return max(map(len, pair))
