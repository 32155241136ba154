"""Expands file patterns, and reads parallel text: line i translates line i of the other side."""

import glob
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import UserError
from .lines import count_lines, read_lines

# Files, or patterns such as `train-*.en.gz`
Files = str | os.PathLike | Sequence[str | os.PathLike]
_WILDCARDS = re.compile(r"(\*\*/|\*+|\?|\[!?[^]]+\])")
_GROUPS = {"**/": "(?:(.*)/)?", "*": "([^/]*)"}  # expressions for what a wildcard stands for


class MissingFile(UserError):
    """Says that a file does not exist, or none matches a pattern."""


def find_shards(files: Files) -> list[list[Path]]:
    """Returns the files that each pattern names, in the order of their names.

    A file's own name is a pattern too.
    """
    return [_matches(each) for each in as_list(files)]


def as_list(files: Files) -> list[str | os.PathLike]:
    return [files] if isinstance(files, str | os.PathLike) else list(files)


def all_shards(files: Files) -> list[Path]:
    return [path for shards in find_shards(files) for path in shards]


def paired_shards(source: Files, target: Files) -> tuple[list[list[Path]], list[list[Path]]]:
    """Returns the files of both sides, as `find_shards` does.

    Those at the same position belong together.
    """
    sides = find_shards(source), find_shards(target)
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"there are {len(sides[0])} source texts and {len(sides[1])} target texts; "
            "give the same number of each"
        )
    for first, second, files, others in zip(as_list(source), as_list(target), *sides, strict=True):
        if len(files) != len(others):
            raise UserError(
                f"there are {len(files)} files from {files[0]} to {files[-1]} and {len(others)} "
                f"from {others[0]} to {others[-1]}; give the same number on each side"
            )
        _require_same_matches(str(first), str(second), files, others)
    return sides


def _require_same_matches(source: str, target: str, files: list[Path], others: list[Path]) -> None:
    """Refuses two patterns of as many wildcards, at least one, that match different texts."""
    for path, other in zip(files, others, strict=True):
        found = _matched(source, path)
        expected = _matched(target, other)
        if len(found) == len(expected) and found != expected:
            raise UserError(
                f"{path} and {other} would belong together by the order of their names, but the "
                "wildcards match different text in them; rename files, or give them one by one"
            )


def _matched(pattern: str, path: Path) -> tuple[str | None, ...]:
    """Returns what each wildcard of a pattern stands for in a path."""
    parts = _WILDCARDS.split(str(Path(pattern)))
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [
        _GROUPS.get(wildcard, "(.*)" if wildcard[0] == "*" else "([^/])")
        for wildcard in parts[1::2]
    ]
    found = re.fullmatch("".join(parts), str(path), re.DOTALL)
    return found.groups() if found else ()


def _matches(pattern: str | os.PathLike) -> list[Path]:
    found = [Path(pattern)]
    if not found[0].exists() and glob.has_magic(str(pattern)):
        found = [Path(each) for each in sorted(glob.glob(str(pattern), recursive=True))]
    if not found:
        raise MissingFile(
            f"no file matches {pattern}; give text files, and put a pattern in quotes"
        )
    for each in found:
        if not each.exists():
            raise MissingFile(f"the text {each} does not exist; give a text file")
        if not each.is_file():
            raise UserError(
                f"the text {each} is not a regular file and cannot be read twice; give a text file"
            )
    return found


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
