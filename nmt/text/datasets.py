"""The training and validation sets: text files to batches.

Training batches come from an endless tf.data pipeline in which batch n depends on the corpus, the seed and n alone, so
a training resumed at batch n sees the batches of an uninterrupted one. Memory holds only the numbers of the training
lines; a batch's lines are read and tokenized when the batch is made.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from ..errors import UserError
from .batches import LONGEST, Batch, cut_batches, encode_pairs, pad
from .mixing import Mixture
from .parallel_text import ParallelText
from .token_counts import token_counts
from .vocabulary import SentencePieceVocabulary, Vocabulary

_ROOM = 1.1  # later random segmentations may be longer than the first by this factor


class TrainingData:
    """The training set, in batches of pairs of similar length.

    Args:
        text: The pairs.
        source_vocabulary: Encodes the source.
        target_vocabulary: Encodes the target.
        batch_size: Pairs in a batch.
        maxlen: Pairs with more tokens on a side are left out.
        max_length_ratio: If given, so are pairs with more than this many times the tokens of one side on the other.
        seed: Decides the order.
        subword_sampling: If above 0, a line is split at random each time, `SentencePieceVocabulary.sample` with this
            alpha.
        token_batch_size: If given, a batch has as many pairs as fit in this many tokens of each side, padding counted.
        weights: How often an epoch takes the pairs of each corpus of the text; `None` for once.

    Attributes:
        used: Number of pairs that are trained on.
        empty: Number of pairs left out because a side is empty.
        too_long: Number of pairs left out because a side has more than `maxlen` tokens.
        unlike: Number of further pairs left out by `max_length_ratio`.
        pairs_per_epoch: Number of pairs in an epoch: those used, unless there are weights.
        batches_per_epoch: Number of batches in an epoch.
        sizes: `(width, pairs used, pairs in an epoch)` for each width of a batch.

    Raises:
        UserError: No pair is left, a vocabulary cannot split at random, or there is not one weight for each corpus.
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
        max_length_ratio: float | None = None,
        token_batch_size: int | None = None,
        subword_sampling: float = 0.0,
        weights: Sequence[float] | None = None,
    ):
        vocabularies = (source_vocabulary, target_vocabulary)
        if subword_sampling and not all(isinstance(each, SentencePieceVocabulary) for each in vocabularies):
            raise UserError("--subword_sampling needs SentencePiece vocabularies (.model); leave it out")
        self._sampling = subword_sampling
        self._text, self._vocabularies, self._seed = text, vocabularies, seed
        self._mixture = Mixture(weights, text.corpora, seed) if weights else None
        self._sides = list(zip((text.source, text.target), vocabularies, strict=True))
        sides = [token_counts(side, words.encode, words.digest) for side, words in self._sides]
        longest, shortest = np.maximum(*sides), np.minimum(*sides)
        empty, too_long = shortest == 0, longest > maxlen
        unlike = ~(empty | too_long) & (longest > (max_length_ratio or np.inf) * np.maximum(shortest, 1))
        self.empty, self.too_long, self.unlike = (int(each.sum()) for each in (empty, too_long, unlike))
        used = np.flatnonzero(~(empty | too_long | unlike)).astype(np.int32)
        self.used = len(used)
        if not self.used:
            raise UserError(
                f"none of the {len(text)} sentence pairs has 1 to {maxlen} tokens on both sides"
                f"{f' and lengths within --max_length_ratio {max_length_ratio}' if self.unlike else ''}; "
                f"give other texts or a larger {'--max_length_ratio' if self.unlike else '--maxlen'}"
            )
        longest = longest[used]
        if subword_sampling:
            longest = np.minimum(np.maximum(longest, np.ceil(self._longest_drawn()[used] * _ROOM)), maxlen)
        widths = bucket_widths(maxlen)
        bucket_of = np.searchsorted(widths, longest + 1).astype(np.uint8)
        self._buckets = [(width, used[bucket_of == i]) for i, width in enumerate(widths)]
        self._rows = {width: max(1, token_batch_size // width) if token_batch_size else batch_size for width in widths}
        sizes = {
            width: self._mixture.size(members) if self._mixture else len(members) for width, members in self._buckets
        }
        self.sizes = [(width, len(members), sizes[width]) for width, members in self._buckets]
        self.pairs_per_epoch = sum(sizes.values())
        self.batches_per_epoch = sum(-(-size // self._rows[width]) for width, size in sizes.items())

    def shapes(self, parts: int = 1) -> list[tuple[int, int]]:
        """Returns the rows and width of the batches of an epoch, or of one of equal parts of each."""
        return [(-(-self._rows[width] // parts), width) for width, _, size in self.sizes if size]

    def batches(self, first: int = 0, share: tuple[int, int] = (0, 1)) -> tf.data.Dataset:
        """Returns batches `first`, `first + 1`, ... without end.

        Args:
            first: Number of the first batch.
            share: (i, n) for the i-th of n equal parts of each batch. Only its lines are read. Rows that fill up the
                last parts have no target words.
        """
        signature = (
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int64),
            tf.TensorSpec([], tf.int64),
        )
        lines = tf.data.Dataset.from_generator(lambda: self._lines(first, *share), output_signature=signature)
        tokenize = tf.autograph.experimental.do_not_convert(self._tokenize)
        return lines.map(tokenize, num_parallel_calls=2, deterministic=True).prefetch(8)

    def _lines(self, first: int, part: int, parts: int) -> Iterator[tuple[list[bytes] | int, ...]]:
        """Yields for each batch: source lines, target lines, number of real pairs, width, batch number, part."""
        for epoch in itertools.count(first // self.batches_per_epoch):
            skip = max(0, first - epoch * self.batches_per_epoch)
            batches = self._epoch(epoch)[skip:]
            for number, (width, members) in enumerate(batches, epoch * self.batches_per_epoch + skip):
                rows = -(-self._rows[width] // parts)
                members = members[part * rows : (part + 1) * rows]
                sources, targets = self._text.pairs(members)
                fill = [b""] * (rows - len(members))
                yield sources + fill, targets + fill, len(members), width, number, part

    def _epoch(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        """Returns the shuffled batches of an epoch: width and line numbers of each."""
        generator = np.random.default_rng([self._seed, epoch])
        batches = []
        for width, members in self._buckets:
            drawn = self._mixture.draw(members, epoch, width) if self._mixture else members
            shuffled = generator.permutation(drawn)
            rows = self._rows[width]
            batches += [(width, shuffled[start : start + rows]) for start in range(0, len(shuffled), rows)]
        return [batches[i] for i in generator.permutation(len(batches))]

    def _tokenize(self, sources, targets, real, width, *place) -> Batch:
        source, source_mask = pad(self._encode(0, sources, width, place), width)
        target, target_mask = pad(self._encode(1, targets, width, place), width)
        is_real = tf.sequence_mask(real, tf.size(sources), tf.float32)
        return Batch(source, source_mask, target, target_mask * is_real[:, tf.newaxis])

    def _encode(self, side: int, lines, width, place) -> tf.RaggedTensor:
        if self._sampling:
            return self._sample(side, place, width - 1, lines)
        return self._vocabularies[side].encode(lines)

    def _longest_drawn(self) -> np.ndarray:
        """Returns the tokens of the longer side of each pair in one random segmentation."""
        return np.maximum(
            *(
                token_counts(
                    text,
                    functools.partial(self._sample, side, (-1, 0), 2**31 - 1),
                    (words.digest, self._sampling, self._seed, side),
                )
                for side, (text, words) in enumerate(self._sides)
            )
        )

    def _sample(self, side: int, place, longest, lines) -> tf.RaggedTensor:
        number, part = place
        seed = tf.stack([tf.cast(value, tf.int64) for value in (self._seed, number + 1, side, part)])
        return self._vocabularies[side].sample(lines, self._sampling, seed, longest)


class ValidationData:
    """The validation set: batches for the loss, and lines to translate with their references.

    Attributes:
        sources: All source lines.
        references: All target lines, as strings.
        batches: The pairs in batches of similar length, without those that are too long.
        too_long: Number of pairs left out of the batches because a side has more than `LONGEST` tokens.
        target_words: Size of the target vocabulary.

    Raises:
        UserError: No pair is left.
    """

    def __init__(
        self, text: ParallelText, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, *, batch_size: int
    ):
        self.target_words = target_vocabulary.size
        self.sources, targets = text.pairs(range(len(text)))
        self.references = [target.decode() for target in targets]
        sides = ((text.source, source_vocabulary), (text.target, target_vocabulary))
        longest = np.maximum(*(token_counts(side, words.encode, words.digest) for side, words in sides))
        self.too_long = int((longest > LONGEST).sum())
        if self.too_long == len(text):
            raise UserError(f"all validation pairs have more than {LONGEST} tokens on a side; give shorter ones")
        scored = np.flatnonzero(longest <= LONGEST)
        self.batches = [
            encode_pairs([(self.sources[i], targets[i]) for i in scored[numbers]], source_vocabulary, target_vocabulary)
            for numbers in cut_batches(longest[scored] + 1, batch_size)
        ]


def bucket_widths(maxlen: int) -> list[int]:
    """Returns the padded lengths of the buckets, shortest first.

    Each is about a sixth longer than the one before, and at least 4 longer. The last fits `maxlen` tokens and the end.
    """
    widths = [8]
    while widths[-1] < maxlen + 1:
        widths.append(max(widths[-1] + 4, widths[-1] * 7 // 6 // 4 * 4))
    return widths
