"""Text files to padded batches of token ids.

Training batches come from an endless tf.data pipeline in which batch n is a pure function of (corpus, seed, n), so a
training resumed at batch n sees what an uninterrupted one would have seen. Lines are read from a memory map and
tokenised in the graph; only their offsets and lengths are held in memory.
"""

import itertools
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .errors import UserError
from .vocab import END, Vocabulary


class Batch(NamedTuple):
    """Sentence pairs, ids padded with `END`; a mask is 1 on words and the one end after them.

    Rows that only fill the batch have an all-zero target mask and a source of nothing but its end.
    """

    source: tf.Tensor  # [batch, source_time]
    source_mask: tf.Tensor  # [batch, source_time]
    target: tf.Tensor  # [batch, target_time]
    target_mask: tf.Tensor  # [batch, target_time]


class TextFile:
    """The lines of a file, by number, without holding them in memory."""

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if not self.path.is_file():
            raise UserError(f"there is no text file {path}")
        with self.path.open("rb") as file:
            self._offsets = np.fromiter(itertools.accumulate(map(len, file), initial=0), np.int64)
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if len(self) else b""

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, line: int) -> bytes:
        return self._bytes[self._offsets[line] : self._offsets[line + 1]].rstrip(b"\r\n")


class ParallelText:
    """Two files whose lines translate each other.

    Raises:
        UserError: A file is missing or empty, or the numbers of lines differ.
    """

    def __init__(self, source: str | os.PathLike, target: str | os.PathLike):
        self.source, self.target = TextFile(source), TextFile(target)
        if len(self.source) != len(self.target):
            raise UserError(
                f"{source} has {len(self.source)} lines and {target} has {len(self.target)}; "
                "line i of one must translate line i of the other"
            )
        if not len(self.source):
            raise UserError(f"{source} and {target} are empty")

    def __len__(self) -> int:
        return len(self.source)

    def pairs(self, numbers: Iterable[int]) -> tuple[list[bytes], list[bytes]]:
        """Returns the source and the target lines of these numbers."""
        numbers = list(numbers)
        return [self.source[i] for i in numbers], [self.target[i] for i in numbers]


class TrainingData:
    """The training corpus, in batches of pairs of like length.

    Attributes:
        used: Number of pairs that are trained on.
        empty: Number of pairs left out because a side is empty.
        too_long: Number of pairs left out because a side has more than `maxlen` tokens.
        batches_per_epoch: Number of batches that hold every used pair once.

    Raises:
        UserError: No pair is left.
    """

    def __init__(
        self,
        text: ParallelText,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        *,
        batch_size: int,
        maxlen: int,
        seed: int,
    ):
        self._text, self._vocabularies = text, (source_vocabulary, target_vocabulary)
        self._batch_size, self._seed = batch_size, seed
        lengths = np.stack(
            [_token_counts(text.source, source_vocabulary), _token_counts(text.target, target_vocabulary)]
        )
        empty, too_long = lengths.min(0) == 0, lengths.max(0) > maxlen
        self.empty, self.too_long = int(empty.sum()), int(too_long.sum())
        used = np.flatnonzero(~(empty | too_long))
        self.used = len(used)
        if not self.used:
            raise UserError(f"of {len(text)} sentence pairs none has 1 to {maxlen} tokens on both sides")
        widths = bucket_widths(maxlen)
        bucket_of = np.searchsorted(widths, lengths.max(0)[used] + 1)
        self._buckets = [(width, used[bucket_of == i]) for i, width in enumerate(widths)]
        self.batches_per_epoch = sum(-(-len(members) // batch_size) for _, members in self._buckets)

    def batches(self, first: int = 0) -> tf.data.Dataset:
        """Returns batches `first`, `first + 1`, ... without end."""
        signature = (
            tf.TensorSpec([self._batch_size], tf.string),
            tf.TensorSpec([self._batch_size], tf.string),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32),
        )
        lines = tf.data.Dataset.from_generator(lambda: self._lines(first), output_signature=signature)
        return lines.map(self._tokenize, num_parallel_calls=2, deterministic=True).prefetch(8)

    def _lines(self, first: int) -> Iterator[tuple[list[bytes], list[bytes], int, int]]:
        """Yields source lines, target lines, number of real pairs and width, from batch `first` on."""
        for epoch in itertools.count(first // self.batches_per_epoch):
            skip = max(0, first - epoch * self.batches_per_epoch)
            for width, members in self._epoch(epoch)[skip:]:
                sources, targets = self._text.pairs(members)
                fill = [b""] * (self._batch_size - len(members))
                yield sources + fill, targets + fill, len(members), width

    def _epoch(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        """Returns the batches of an epoch in their order: width and line numbers."""
        generator = np.random.default_rng([self._seed, epoch])
        batches = []
        for width, members in self._buckets:
            shuffled = generator.permutation(members)
            starts = range(0, len(shuffled), self._batch_size)
            batches += [(width, shuffled[start : start + self._batch_size]) for start in starts]
        return [batches[i] for i in generator.permutation(len(batches))]

    def _tokenize(self, sources, targets, real, width) -> Batch:
        source, source_mask = pad(self._vocabularies[0].encode(sources), width)
        target, target_mask = pad(self._vocabularies[1].encode(targets), width)
        is_real = tf.sequence_mask(real, self._batch_size, tf.float32)
        return Batch(source, source_mask, target, target_mask * is_real[:, tf.newaxis])


class ValidationData:
    """A validation corpus: batches to measure the loss on, lines to translate and their references."""

    def __init__(
        self, text: ParallelText, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, *, batch_size: int
    ):
        self.sources, targets = text.pairs(range(len(text)))
        try:
            self.references = [target.decode() for target in targets]
        except UnicodeDecodeError as error:
            raise UserError(f"{text.target.path} is not UTF-8: {error}") from None
        pairs = sorted(zip(self.sources, targets, strict=True), key=pair_length)
        starts = range(0, len(pairs), batch_size)
        self.batches = [
            encode_pairs(pairs[start : start + batch_size], source_vocabulary, target_vocabulary) for start in starts
        ]


def bucket_widths(maxlen: int) -> list[int]:
    """Returns the padded lengths in use: steps of at least 4 and about a sixth, the last with room for `maxlen`."""
    widths = [8]
    while widths[-1] < maxlen + 1:
        widths.append(max(widths[-1] + 4, widths[-1] * 7 // 6 // 4 * 4))
    return widths


def pad(ids: tf.RaggedTensor, width: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns ids and mask `[batch, width]` of `[batch, (tokens)]`; the default width has room for the longest."""
    dense = ids.to_tensor(END)
    longest = tf.shape(dense)[1]
    width = longest + 1 if width is None else width
    mask = tf.sequence_mask(ids.row_lengths() + 1, width, tf.float32)
    return tf.pad(dense, [[0, 0], [0, width - longest]], constant_values=END), mask


def encode_pairs(
    pairs: Sequence[tuple[bytes, bytes]], source_vocabulary: Vocabulary, target_vocabulary: Vocabulary
) -> Batch:
    """Returns the batch of these pairs of lines."""
    sources, targets = zip(*pairs, strict=True)
    return Batch(*pad(source_vocabulary.encode(sources)), *pad(target_vocabulary.encode(targets)))


def pair_length(pair: tuple[bytes, bytes]) -> int:
    """Returns the length of the longer side."""
    return max(map(len, pair))


def map_by_length(
    function: Callable[[list], Iterable], items: Iterable, size: int, length: Callable[[Any], int] = len
) -> Iterator:
    """Applies a function to batches of items of like length.

    Takes the items twenty batches at a time: the results of a stream come in portions, each as its items are there.

    Args:
        function: Maps a list of at most `size` items to their results.
        items: Lines, or tuples of lines.
        size: Number of items in a batch.
        length: Length of an item.

    Yields:
        The result of each item, in the order of the items.
    """
    items = iter(items)
    while chunk := list(itertools.islice(items, 20 * size)):
        by_length = sorted(range(len(chunk)), key=lambda number: length(chunk[number]))
        results = [None] * len(chunk)
        for start in range(0, len(chunk), size):
            numbers = by_length[start : start + size]
            found = function([chunk[number] for number in numbers])
            for number, result in zip(numbers, found, strict=True):
                results[number] = result
        yield from results


def _token_counts(text: TextFile, vocabulary: Vocabulary) -> np.ndarray:
    """Returns the number of tokens of each line, without the end."""
    count = tf.function(
        lambda lines: vocabulary.encode(lines).row_lengths(), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    starts = range(0, len(text), 8192)
    chunks = [[text[i] for i in range(start, min(start + 8192, len(text)))] for start in starts]
    return np.concatenate([count(tf.constant(chunk)).numpy() for chunk in chunks])
