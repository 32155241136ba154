"""Reads the training and validation sets, and makes batches of them.

Batch n depends on the corpus, the seed and n alone, so a training resumed at batch n sees the
batches of an uninterrupted one. Memory holds only the numbers of the training lines; the rows of a
batch are read from mapped files.
"""

import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..concurrency import cores, parallel_map
from ..errors import UserError
from ..storage.cache import Cache
from .batches import LONGEST, Batch, pad_rows, rows_of
from .dataset_cache import RaggedArray, drawn_lengths, hash_lines, raw_lines, token_ids
from .lines import spread
from .mixing import WeightedSampler
from .parallel_text import ParallelText
from .vocabulary import SentencePieceVocabulary, Vocabularies

_BLOCK = 1 << 18  # pairs whose lengths are read at a time
_SAMPLE = 1000  # lines of a sample
_ROOM = 1.1  # later random segmentations may be longer than the first by this factor


class TrainingData:
    """The training set, in batches of pairs of similar length.

    A pair is left out if a side is empty or has more than `config.maxlen` tokens, or if a side has
    more than `config.max_length_ratio` times the tokens of the other, without prefixes. With
    `config.subword_sampling`, a line is split at random each time.

    Args:
        config: A `config.Config`.
        cache: Keeps the prepared text.

    Attributes:
        pairs: Number of pairs of the text.
        used: Number of pairs that are trained on.
        empty: Number of pairs left out because a side is empty.
        too_long: Number of further pairs left out because a side has more than `maxlen` tokens.
        unlike: Number of further pairs left out by `max_length_ratio`.
        pairs_per_epoch: Number of pairs in an epoch: those used, unless there are weights.
        batches_per_epoch: Number of batches in an epoch.
        samples: Token ids of some lines of each side, evenly spread.
        sizes: `(width, pairs, batches)` in an epoch, for each width that pairs have.
    """

    def __init__(self, text: ParallelText, vocabularies: Vocabularies, config: Any, cache: Cache):
        if config.subword_sampling and not all(
            isinstance(each, SentencePieceVocabulary) for each in vocabularies
        ):
            raise UserError(
                "--subword_sampling needs SentencePiece vocabularies (.model); leave it out"
            )
        self._vocabularies = vocabularies
        self._config = config
        sides = list(zip((text.source, text.target), vocabularies, strict=True))
        rows = [token_ids(paths, vocabulary, cache) for paths, vocabulary in sides]
        if rows[0].starts != rows[1].starts:
            collections.deque(text, maxlen=0)  # raises an error for files of different lengths
        self.pairs = len(rows[0])
        if not self.pairs:
            raise text.empty()
        sample = np.linspace(0, self.pairs - 1, min(self.pairs, _SAMPLE)).astype(int)
        self.samples = [np.concatenate(list(map(each.__getitem__, sample))) for each in rows]
        self._hashes = [each.hashes for each in rows]
        self._corpora = [rows[0].starts[file] for file in text.corpora]
        weights = config.dataset_weights
        self._sampler = WeightedSampler(weights, self._corpora, config.seed) if weights else None
        prefixes = tf.constant(config.target_prefixes or [""] * len(text.names), tf.string)
        self._prefixes = rows_of(vocabularies.target.encode(prefixes))
        alpha = config.subword_sampling
        self._rows = [raw_lines(paths, cache) for paths, _ in sides] if alpha else rows
        drawn = [
            drawn_lengths(paths, vocabulary, alpha, (config.seed, 0, side, 0), cache)
            for side, (paths, vocabulary) in enumerate(sides)
            if alpha
        ]
        self._buckets, (self.empty, self.too_long, self.unlike) = self._members(rows, drawn)
        self.used = sum(len(members) for _, members in self._buckets)
        if not self.used:
            counted = ", prefixes included" if any(map(len, self._prefixes)) else ""
            ratio = f" and lengths within --max_length_ratio {config.max_length_ratio}"
            raise UserError(
                f"none of the {self.pairs} sentence pairs has 1 to {config.maxlen} tokens on both "
                f"sides{counted}{ratio if self.unlike else ''}; give other texts or a larger "
                f"{'--max_length_ratio' if self.unlike else '--maxlen'}"
            )
        tokens = config.token_batch_size
        self._rows_of = {
            width: max(1, tokens // width) if tokens else config.batch_size
            for width, _ in self._buckets
        }
        sizes = [
            self._sampler.size(each) if self._sampler else len(each) for _, each in self._buckets
        ]
        self.sizes = _batches_of_widths(sizes, self._rows_of)
        self.pairs_per_epoch = sum(sizes)
        self.batches_per_epoch = sum(batches for _, _, batches in self.sizes)

    def _members(
        self, rows: list[RaggedArray], drawn: list[RaggedArray]
    ) -> tuple[list[tuple[int, np.ndarray]], list[int]]:
        """Returns each width with the numbers of its pairs, if it has any, and how many pairs are
        empty, too long and unlike.

        Memory grows with a corpus by what this returns, and by as much again until it does: lengths
        are read in blocks.
        """
        maxlen = self._config.maxlen
        widths = bucket_widths(maxlen)
        members = [[] for _ in widths]
        left_out = np.zeros(3, int)
        prefix_sizes = np.array([len(each) for each in self._prefixes])
        for begin in range(0, self.pairs, _BLOCK):
            block = slice(begin, min(begin + _BLOCK, self.pairs))
            prefixed = prefix_sizes[self._corpus_of(np.arange(block.start, block.stop))]
            source, target = (each.lengths(block) for each in rows)
            empty = (source == 0) | (target == 0)
            longest = np.maximum(source, target + prefixed)
            too_long = ~empty & (longest > maxlen)
            shortest = np.maximum(np.minimum(source, target), 1)
            ratio = self._config.max_length_ratio or np.inf
            unlike = ~(empty | too_long) & (np.maximum(source, target) > ratio * shortest)
            left_out += [each.sum() for each in (empty, too_long, unlike)]
            if drawn:
                source, target = (each.lengths(block) for each in drawn)
                later = np.ceil(np.maximum(source, target + prefixed) * _ROOM)
                longest = np.minimum(np.maximum(longest, later), maxlen)
            width_of = np.searchsorted(widths, longest + 1)
            width_of[empty | too_long | unlike] = len(widths)
            for number, each in enumerate(members):
                each.append((np.flatnonzero(width_of == number) + begin).astype(np.int32))
        found = [(width, np.concatenate(each)) for width, each in zip(widths, members, strict=True)]
        return [each for each in found if len(each[1])], left_out.tolist()

    def shared_with(self, text: ParallelText) -> int:
        """Returns how many pairs of another text are also in the training text."""
        sides = map(list, zip(*text, strict=True))
        wanted = _hash_pairs(*(hash_lines(tf.constant(side)).numpy() for side in sides))
        found = [wanted[:0]]
        for begin in range(0, self.pairs, _BLOCK):
            block = (side[begin : begin + _BLOCK] for side in self._hashes)
            found.append(np.intersect1d(wanted, _hash_pairs(*block)))
        return int(np.isin(wanted, np.concatenate(found)).sum())

    def _corpus_of(self, members: np.ndarray) -> np.ndarray:
        """Returns the number of the corpus of each pair; a corpus may be empty."""
        return np.searchsorted(self._corpora, members, side="right") - 1

    def batches(self, first: int = 0, share: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """Yields batches `first`, `first + 1`, ... without end. Other threads make the next ones
        meanwhile.

        Args:
            first: Number of the first batch.
            share: (i, n) for the i-th of n equal parts of each batch. Only its rows are read. Rows
                that fill up the last parts have no target words.
        """
        threads = cores() if self._config.subword_sampling else 1
        return parallel_map(lambda place: self._batch(*place), self._places(first, *share), threads)

    def _places(
        self, first: int, part: int, parts: int
    ) -> Iterator[tuple[int, int, np.ndarray, tuple[int, int]]]:
        """Yields width, number of rows, pairs, and (number, part) of each batch."""
        for epoch in itertools.count(first // self.batches_per_epoch):
            skip = max(0, first - epoch * self.batches_per_epoch)
            batches = self._epoch(epoch)[skip:]
            for number, (width, members) in enumerate(
                batches, epoch * self.batches_per_epoch + skip
            ):
                rows = -(-self._rows_of[width] // parts)
                yield width, rows, members[part * rows : (part + 1) * rows], (number, part)

    def _batch(self, width: int, rows: int, members: np.ndarray, place: tuple[int, int]) -> Batch:
        found = [self._ids(side, members, width - 1, *place) for side in (0, 1)]
        fill = [np.zeros(0, np.int32)] * (rows - len(members))
        (source, source_mask), (target, target_mask) = (
            pad_rows(ids + fill, width) for ids in found
        )
        target_mask[len(members) :] = 0
        return Batch(*map(tf.constant, (source, source_mask, target, target_mask)))

    def _ids(
        self, side: int, members: np.ndarray, longest: int, number: int, part: int
    ) -> list[np.ndarray]:
        rows = [self._rows[side][i] for i in members]
        prefixes = [self._prefixes[corpus] for corpus in self._corpus_of(members)] if side else []
        if alpha := self._config.subword_sampling:
            seed = (self._config.seed, number + 1, side, part)
            longest -= max(map(len, prefixes), default=0)
            lines = [row.tobytes() for row in rows]
            rows = self._vocabularies[side].sample(lines, alpha, seed, longest)
        if not any(map(len, prefixes)):
            return rows
        return [np.concatenate(pair) for pair in zip(prefixes, rows, strict=True)]

    def _epoch(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        """Returns the shuffled batches of an epoch: width and line numbers of each.

        What is left of a width when its batches are full goes into the next wider one. So at most
        one batch of an epoch is not full: its few pairs would count more than others.
        """
        generator = np.random.default_rng([self._config.seed, epoch])
        batches = []
        left = np.zeros(0, np.int32)
        for width, members in self._buckets:
            drawn = self._sampler.draw(members, epoch, width) if self._sampler else members
            pairs = np.concatenate([left, generator.permutation(drawn)])
            rows = self._rows_of[width]
            full = len(pairs) - len(pairs) % rows
            batches += [(width, pairs[start : start + rows]) for start in range(0, full, rows)]
            left = pairs[full:]
        if len(left):
            batches.append((width, left))
        return [batches[i] for i in generator.permutation(len(batches))]


class ValidationData:
    """The validation set: ids for the loss, and lines to translate with their references.

    Each file or pattern of the text is a set of its own, of at most `config.valid_sample` pairs,
    evenly spread. Its translations begin with its text of `config.valid_target_prefixes`.

    Attributes:
        pairs: Number of pairs of the text.
        sources: The source lines.
        references: The target lines, as strings.
        prefixes: What each translation begins with; `None` without `target_prefixes`.
        decoded_prefixes: The same as the vocabulary spells it, as in a translation.
        sets: Name and lines of each set.
        ids: The pairs as ids, the rows of each side, without those that are too long.
        too_long: Number of pairs left out of `ids` because a side has more than `LONGEST` tokens.
        target_words: Size of the target vocabulary.
    """

    def __init__(self, text: ParallelText, vocabularies: Vocabularies, config: Any):
        self.target_words = vocabularies.target.size
        sets = [list(text.corpus(number)) for number in range(len(text.names))]
        self.pairs = sum(map(len, sets))
        sets = [list(spread(pairs, len(pairs), config.valid_sample)) for pairs in sets]
        ends = np.cumsum([0, *map(len, sets)]).tolist()
        self.sets = [
            (name, slice(*lines))
            for name, lines in zip(text.names, itertools.pairwise(ends), strict=True)
        ]
        if not (pairs := list(itertools.chain.from_iterable(sets))):
            raise text.empty()
        self.sources, targets = map(list, zip(*pairs, strict=True))
        self.references = [target.decode() for target in targets]
        given = zip(config.valid_target_prefixes or [""] * len(sets), sets, strict=True)
        prefixes = list(
            itertools.chain.from_iterable([prefix] * len(each) for prefix, each in given)
        )
        self.prefixes = prefixes if config.valid_target_prefixes else None
        begins = vocabularies.target.encode(tf.constant(prefixes, tf.string))
        spelled = vocabularies.target.decode(begins).numpy()
        self.decoded_prefixes = [prefix.decode(errors="replace") for prefix in spelled]
        source, target = (
            each.encode(lines)
            for each, lines in zip(vocabularies, (self.sources, targets), strict=True)
        )
        sides = source, tf.concat([begins, target], 1)
        longest = np.maximum(*(ids.row_lengths().numpy() for ids in sides))
        self.too_long = int((longest > LONGEST).sum())
        if self.too_long == len(pairs):
            raise UserError(
                f"all validation pairs have more than {LONGEST} tokens on a side; give shorter ones"
            )
        self.ids = [rows_of(tf.ragged.boolean_mask(ids, longest <= LONGEST)) for ids in sides]


def _hash_pairs(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns a hash of each pair, given those of its lines."""
    return source * np.int64(31) + target  # integers wrap around


def _batches_of_widths(pairs: Sequence[int], rows: dict[int, int]) -> list[tuple[int, int, int]]:
    """Returns `(width, pairs, batches)` of each width, given its pairs and rows of a batch."""
    found = []
    left = 0
    for (width, size), count in zip(rows.items(), pairs, strict=True):
        batches, left = divmod(left + count, size)
        found.append((width, count, batches))
    width, count, batches = found[-1]
    return [*found[:-1], (width, count, batches + (left > 0))]


def bucket_widths(maxlen: int) -> list[int]:
    """Returns the padded lengths of the buckets, each a sixth (at least 4) longer.

    The last fits `maxlen` and END.
    """
    widths = [8]
    while widths[-1] < maxlen + 1:
        widths.append(max(widths[-1] + 4, widths[-1] * 7 // 6 // 4 * 4))
    return widths
