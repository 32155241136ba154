"""Vocabularies of the most frequent words."""

import collections
from collections.abc import Iterable


def most_frequent(words: Iterable[str], count: int, first: int = 0) -> dict[str, int]:
    """Returns the number of each of the most frequent words; equally frequent ones are in alphabetical order.

    >>> most_frequent(["b", "a", "c", "b"], 2, first=10)
    {'b': 10, 'a': 11}

    Args:
        words: All words of a text.
        count: The largest number of words to keep.
        first: Number of the first.
    """
    counts = collections.Counter(words)
    chosen = sorted(counts, key=lambda word: (-counts[word], word))[:count]
    return {word: first + index for index, word in enumerate(chosen)}
