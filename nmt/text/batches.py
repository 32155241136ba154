"""Text files to padded batches of token ids.

Training batches come from an endless tf.data pipeline in which batch n is a pure function of (corpus, seed, n), so a
training resumed at batch n sees what an uninterrupted one would have seen. Lines are read when their batch is made and
tokenised in the graph; only their offsets and lengths are held in memory.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from .lines import ParallelText, TextFile
from .vocabulary import END, Vocabulary

LONGEST = 1000  # tokens of a sentence that are translated or scored, so that no sentence takes all the memory


class Batch(NamedTuple):
    """Sentence pairs, ids padded with `END`; a mask is 1 on words and the one end after them.

    Rows that only fill the batch have an all-zero target mask and a source of nothing but its end.
    """

    source: tf.Tensor  # [batch, source_time]
    source_mask: tf.Tensor  # [batch, source_time]
    target: tf.Tensor  # [batch, target_time]
    target_mask: tf.Tensor  # [batch, target_time]


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
        lengths = _pair_lengths(text, source_vocabulary, target_vocabulary)
        empty, too_long = lengths.min(0) == 0, lengths.max(0) > maxlen
        self.empty, self.too_long = int(empty.sum()), int(too_long.sum())
        used = np.flatnonzero(~(empty | too_long)).astype(np.int32)
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
    """A validation corpus: batches to measure the loss on, lines to translate and their references.

    Attributes:
        too_long: Number of pairs left out of the batches because a side has more than `LONGEST` tokens.

    Raises:
        UserError: No pair is left.
    """

    def __init__(
        self, text: ParallelText, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, *, batch_size: int
    ):
        self.sources, targets = text.pairs(range(len(text)))
        self.references = [target.decode() for target in targets]
        too_long = _pair_lengths(text, source_vocabulary, target_vocabulary).max(0) > LONGEST
        self.too_long = int(too_long.sum())
        if self.too_long == len(text):
            raise UserError(f"all pairs for validation have more than {LONGEST} tokens on a side; give shorter ones")
        pairs = zip(self.sources, targets, too_long, strict=True)
        pairs = sorted(((source, target) for source, target, long in pairs if not long), key=pair_length)
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


def in_portions(items: Iterable, size: int) -> Iterator[list]:
    """Yields items in lists of `size`."""
    items = iter(items)
    while portion := list(itertools.islice(items, size)):
        yield portion


def map_by_length(
    function: Callable[[list], Iterable],
    portions: Iterable[Sequence],
    size: int,
    length: Callable[[Any], int] = len,
) -> Iterator:
    """Applies a function to batches of items of like length.

    Args:
        function: Maps a list of at most `size` items to their results.
        portions: Lists of items, lines or tuples of lines; batches are of items of one portion.
        size: Number of items in a batch.
        length: Length of an item.

    Yields:
        The result of each item, in the order of the items.
    """
    for portion in portions:
        by_length = sorted(range(len(portion)), key=lambda number: length(portion[number]))
        results = [None] * len(portion)
        for numbers in in_portions(by_length, size):
            found = function([portion[number] for number in numbers])
            for number, result in zip(numbers, found, strict=True):
                results[number] = result
        yield from results


def _pair_lengths(text: ParallelText, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary) -> np.ndarray:
    """Returns the number of tokens of each line, `[2, lines]`."""
    return np.stack([_token_counts(text.source, source_vocabulary), _token_counts(text.target, target_vocabulary)])


def _token_counts(text: TextFile, vocabulary: Vocabulary) -> np.ndarray:
    """Returns the number of tokens of each line, without the end."""
    count = tf.function(
        lambda lines: vocabulary.encode(lines).row_lengths(),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    counts = np.empty(len(text), np.int32)
    done = 0
    for lines in _portions_of_bytes(text, 1 << 20):
        counts[done : done + len(lines)] = count(tf.constant(lines))
        done += len(lines)
    return counts


def _portions_of_bytes(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Yields lines in lists of at least `size` bytes, line ends counted."""
    portion, held = [], 0
    for line in lines:
        portion.append(line)
        held += len(line) + 1
        if held >= size:
            yield portion
            portion, held = [], 0
    if portion:
        yield portion
