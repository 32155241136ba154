"""Files of a data set, plain or compressed by gzip, and the most frequent words of texts."""

import collections
import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path

from nmt.errors import UserError


def find_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Returns the paths of some files of a folder, each of which may also end in .gz.

    Raises:
        UserError: Some of them are missing.
    """
    paths = []
    missing = []
    for name in names:
        candidates = (folder / name, folder / f"{name}.gz")
        found = [path for path in candidates if path.is_file()]
        paths += found[:1]
        missing += [] if found else [name]
    if missing:
        raise UserError(
            f"{folder} lacks {', '.join(missing)}; put these files there, plain or as .gz"
        )
    return paths


def read_text(path: Path) -> str:
    """Returns the content of a file in UTF-8, decompressed if it ends in .gz.

    Raises:
        UserError: The file cannot be read, unpacked or decoded.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def most_frequent(words: Iterable[str], count: int, first: int = 0) -> dict[str, int]:
    """Returns the number of each of the most frequent words.

    Equally frequent ones are in alphabetical order.

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
