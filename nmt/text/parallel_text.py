"""Parallel text: line i of one side translates line i of the other."""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from ..errors import UserError
from ..storage.cache import Cache
from .lines import Text
from .pairing import require_pairs
from .scan import require_utf8
from .shards import Files, find_shards


class ParallelText:
    """Two texts whose lines translate each other.

    Args:
        source: A file or pattern, or several. With a cache, files may be compressed.
        target: As many files in the same order.
        cache: Keeps the results of the scan.

    Attributes:
        source: The source text.
        target: The target text.
        corpora: For each file or pattern given, the number of its first line; then that of all lines.

    Raises:
        UserError: A file is missing, damaged or not UTF-8, or the numbers of files or lines differ, or patterns name
            files that do not belong together.
    """

    def __init__(self, source: Files, target: Files, cache: Cache | None = None):
        sides = find_shards(source), find_shards(target)
        require_pairs(source, target, sides)
        self.source, self.target = (Text([path for shards in side for path in shards], cache) for side in sides)
        for i, (path, other) in enumerate(zip(self.source.paths, self.target.paths, strict=True)):
            lines, others = (side.starts[i + 1] - side.starts[i] for side in (self.source, self.target))
            if lines != others:
                raise UserError(
                    f"{path} has {lines} lines and {other} has {others}; "
                    "line i of one must translate line i of the other"
                )
        self.corpora = [self.source.starts[i] for i in np.cumsum([0, *map(len, sides[0])])]
        self._cache = cache

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(self.source, self.target, strict=True)

    def pairs(self, numbers: Iterable[int]) -> tuple[list[bytes], list[bytes]]:
        """Returns the source lines and the target lines with these numbers."""
        numbers = list(numbers)
        return [self.source[i] for i in numbers], [self.target[i] for i in numbers]

    def checked(self) -> "ParallelText":
        """Returns itself if it can be used for training or validation.

        Raises:
            UserError: The text is empty or not UTF-8.
        """
        if not len(self):
            raise UserError(f"{self.source} and {self.target} are empty")
        if self._cache is None:  # with a cache, all lines were checked
            for path in (*self.source.paths, *self.target.paths):
                require_utf8(path)
        return self

    def shared_with(self, training: "ParallelText") -> int:
        """Returns how many pairs of this text are also in the training text. Memory holds only this text."""
        if self._cache is None:
            return self._count_shared(training)
        digests = [side.digest for text in (self, training) for side in (text.source, text.target)]
        name = "shared-" + hashlib.sha256("".join(digests).encode()).hexdigest()
        return int(self._cache.array(name, lambda: np.array(self._count_shared(training))))

    def _count_shared(self, training: "ParallelText") -> int:
        own = list(self)
        sources = {source for source, _ in own}
        found = {(source, training.target[i]) for i, source in enumerate(training.source) if source in sources}
        return sum(pair in found for pair in own)
