"""Reads parallel text: line i of one side translates line i of the other."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import UserError
from .lines import count_lines, read_lines
from .shards import Files, as_list, paired_shards


class ParallelText:
    """Two texts whose lines translate each other.

    Attributes:
        source, target: The files of each side.
        corpora: For each file or pattern given, the number of its first file; then that of all
            files.
        names: A name of its own for each file or pattern given, of the target.
    """

    def __init__(self, source: Files, target: Files):
        sides = paired_shards(source, target)
        self.source, self.target = (list(itertools.chain.from_iterable(side)) for side in sides)
        self.corpora = np.cumsum([0, *map(len, sides[0])]).tolist()
        self.names = _distinct(list(map(str, as_list(target))))

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs in order; see `corpus`."""
        return itertools.chain.from_iterable(map(self.corpus, range(len(self.names))))

    def corpus(self, number: int) -> Iterator[tuple[bytes, bytes]]:
        files = slice(*self.corpora[number : number + 2])
        for path, other in zip(self.source[files], self.target[files], strict=True):
            for pair in itertools.zip_longest(read_lines(path), read_lines(other)):
                if None in pair:
                    raise other_lines(path, other, count_lines(path), count_lines(other))
                yield pair

    def empty(self) -> UserError:
        return UserError(f"{self.source[0]} and {self.target[0]} are empty")


def _distinct(paths: list[str]) -> list[str]:
    """Returns the shortest distinct names: last parts of paths, whole paths, or numbered ones."""
    names = [Path(path).name for path in paths]
    if len(set(names)) < len(names):
        names = paths
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names, 1)]


def other_lines(path: Path, other: Path, lines: int, others: int) -> UserError:
    """Returns the error for two files with different numbers of lines."""
    return UserError(
        f"{path} has {lines} lines and {other} has {others}; "
        "line i of one must translate line i of the other"
    )
