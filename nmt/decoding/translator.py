"""Translation of strings: vocabularies, model and search in one `tf.Module`.

A sentence may contain any bytes. Bytes that are not UTF-8 become unknown words. A sentence of more
than `LONGEST` tokens would exhaust the memory. A line is then translated in pieces, which are
joined. The graph reads only the first `LONGEST` tokens and says so.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, ragged, rows_of
from ..text.long_lines import join_pieces, split_line
from ..text.vocabulary import END, Vocabularies, units
from .batch_parallel import map_batches
from .constraints import constrain
from .options import DecodingOptions
from .sampling import draws, sample
from .search import Hypotheses, beam_search

Texts = Sequence[str | bytes]
_IDS = tf.RaggedTensorSpec([None, None], tf.int32)


class Translations(NamedTuple):
    """Translations of a batch, best first."""

    texts: tf.Tensor  # [batch, beam] strings without line breaks
    scores: (
        tf.Tensor
    )  # [batch, beam], cost / length**alpha; infinite where the search found no translation
    words: tf.Tensor  # [batch, beam, time] ids, padded with the end
    lengths: tf.Tensor  # [batch, beam], without the end
    cut: tf.Tensor  # [batch, beam], whether the limit of its length ended a translation


class Line(NamedTuple):
    """The translations of a line, best first. There is at least one."""

    texts: list[str]
    scores: list[float]
    words: list[list[int]]  # ids of the best one without their end, for each piece
    cut: list[bool]  # whether the limit of its length ended each of them, in a piece at least
    pieces: list[bytes]  # of the line; several if it was too long to be translated at once
    unknown: bool  # whether half of its tokens or more are unknown words
    unknown_prefix: bool  # whether what the translations begin with has unknown words


class Translator(tf.Module):
    def __init__(self, vocabularies: Vocabularies, model: Decodable, options: DecodingOptions):
        super().__init__()
        self._source_vocabulary, self._target_vocabulary = vocabularies
        # A tracked model would save each Keras variable and a copy of it, and servers without
        # Python restore only the copy. So track the TensorFlow variables, and keep only bound
        # methods of the model, which are not tracked.
        self._encode = model.encode
        self._make_step = model.make_step
        self._first_word = model.first_word
        self._variables = [variable.value for variable in model.variables]
        self.options = options

    def encode(self, sources: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Returns ids `[batch, (tokens)]`, at most `LONGEST` for each of `sources`, and whether there are more."""
        ids = self._source_vocabulary.encode(sources)
        return ids[:, :LONGEST], ids.row_lengths() > LONGEST

    def translate(
        self,
        ids: tf.RaggedTensor,
        uniforms: tf.Tensor | None = None,
        prefixes: tf.RaggedTensor | None = None,
    ) -> Translations:
        """Returns the translations of ids `[batch, (tokens)]`, with the arguments of `search`."""
        found = self.search(ids, uniforms, prefixes)
        lengths = found.lengths
        words = tf.RaggedTensor.from_tensor(
            tf.reshape(found.words, [-1, tf.shape(found.words)[2]]), tf.reshape(lengths, [-1])
        )
        texts = (
            units(self._target_vocabulary, words)
            if self.options.units
            else self._target_vocabulary.decode(words)
        )
        decoded = tf.strings.regex_replace(texts, r"[\r\n]+", " ")
        texts = tf.reshape(decoded, tf.shape(found.scores))
        return Translations(texts, found.scores, found.words, lengths, found.cut)

    def search(
        self,
        ids: tf.RaggedTensor,
        uniforms: tf.Tensor | None = None,
        prefixes: tf.RaggedTensor | None = None,
    ) -> Hypotheses:
        """Returns the translations of ids `[batch, (tokens)]` as ids.

        An empty source without a prefix has one translation, which is empty.

        Args: ids: At most `LONGEST` for each sentence. uniforms: The random numbers of `sample`, if
            the options draw translations. prefixes: Ids that the translations begin with, `[batch,
            (tokens)]`. One that is longer than its translation
                may be is cut, as `cut` says.
        """
        options = self.options
        limits = options.limits(tf.cast(ids.row_lengths(), tf.int32))
        too_long = False
        given = ids
        if prefixes is not None:
            starts = prefixes.row_starts()
            ends = prefixes.row_limits()
            most = starts + tf.cast(limits, starts.dtype)
            too_long = (ends > most)[:, tf.newaxis]
            prefixes = tf.gather(prefixes.values, tf.ragged.range(starts, tf.minimum(ends, most)))
            given = tf.concat([ids, prefixes], 1)
        state, memory = self._encode(*pad(ids))
        unknowns = self._target_vocabulary.unknowns
        step, *start = constrain(
            self._make_step(), state, memory, options, unknowns, limits, prefixes
        )
        if options.samples:
            found = sample(step, *start, options, uniforms, limits=limits, start=self._first_word)
        else:
            beam = {"beam_size": options.beam_size, "alpha": options.normalization_alpha}
            found = beam_search(step, *start, **beam, limits=limits, start=self._first_word)
        empty = (given.row_lengths() == 0)[:, tf.newaxis]
        only_first = tf.where(tf.range(options.hypotheses) == 0, 0.0, float("inf"))
        return Hypotheses(
            tf.where(empty[..., tf.newaxis], END, found.words),
            tf.where(empty, only_first, found.costs),
            tf.where(empty, only_first, found.scores),
            (found.cut | too_long) & ~empty,
        )

    @tf.function(autograph=False)
    def _translate(self, *inputs: tf.Tensor | tf.RaggedTensor) -> Translations:
        return self.translate(*inputs)

    def lines(self, lines: Texts, first: int = 0, prefixes: Texts | None = None) -> list[Line]:
        """Returns the translations of lines, computed in batches of similar lengths, several at a
        time.

        Args: first: Number of the first of them in its text. The number of a line decides its
            samples. prefixes: What the translation of each line begins with, or nothing if it is
            empty.
        """
        sources = rows_of(self._source_vocabulary.encode(tf.constant(lines, tf.string)))
        target = self._target_vocabulary
        encode = target.ids_of_units if self.options.units else target.encode
        begin = None if prefixes is None else rows_of(encode(tf.constant(prefixes, tf.string)))
        begins = []  # ids of the prefix of each piece; only the first of a line has one
        pieces = []  # of all lines: ids, and (number of the line in its text, number of the piece)
        places = []
        texts = [self._pieces(line, ids) for line, ids in zip(lines, sources, strict=True)]
        for number, (line, ids) in enumerate(zip(texts, sources, strict=True)):
            pieces += (
                [ids]
                if len(line) == 1
                else rows_of(self._source_vocabulary.encode(tf.constant(line)))
            )
            places += [(first + number, piece) for piece in range(len(line))]
            if begin is not None:
                begins += [begin[number], *[begin[number][:0]] * (len(line) - 1)]
        specs = [
            _IDS,
            tf.TensorSpec([None, None, None], tf.float32),
            *([] if begin is None else [_IDS]),
        ]
        run = self._translate.get_concrete_function(*specs)

        def translate(numbers: np.ndarray) -> list[tuple[np.ndarray, ...]]:
            rows = [pieces[i] for i in numbers]
            uniforms = self._uniforms([places[i] for i in numbers], [len(row) for row in rows])
            begun = [ragged([begins[i] for i in numbers])] if begins else []
            found = run(ragged(rows), tf.constant(uniforms), *begun)
            return list(zip(*(field.numpy() for field in found), strict=True))

        lengths = np.array([len(ids) + 1 for ids in pieces], np.int64)
        found = iter(map_batches(translate, lengths, self.options.batch_size))
        given = zip(texts, sources, begin or [np.zeros(0, np.int32)] * len(lines), strict=True)
        return [
            self._line(line, *ids, list(itertools.islice(found, len(line)))) for line, *ids in given
        ]

    def _pieces(self, line: str | bytes, ids: np.ndarray) -> list[bytes]:
        line = tf.compat.as_bytes(line)
        if len(ids) <= LONGEST:
            return [line]
        encode = self._source_vocabulary.encode
        return split_line(
            line, lambda piece: encode(tf.constant([piece])).flat_values.shape[0] <= LONGEST
        )

    def _uniforms(self, places: Sequence[tuple[int, int]], lengths: Sequence[int]) -> np.ndarray:
        """Returns the random numbers of `sample` for each piece, 0 after its own limit."""
        if not self.options.samples:
            return np.zeros([0, 0, 0], np.float32)
        limits = [self.options.limits(length) for length in lengths]
        uniforms = np.zeros([len(places), self.options.hypotheses, max(limits) + 1], np.float32)
        for row, place, limit in zip(uniforms, places, limits, strict=True):
            row[:, : limit + 1] = draws(self.options, place, limit)
        return uniforms

    def _line(
        self,
        pieces: list[bytes],
        ids: np.ndarray,
        prefix: np.ndarray,
        found: list[tuple[np.ndarray, ...]],
    ) -> Line:
        joined = join_translations(
            [Translations(*fields) for fields in found],
            [piece + b" " for piece in pieces] if self.options.units else pieces,
            self.options.normalization_alpha,
        )
        texts, scores, words, cut = map(list, zip(*joined, strict=True))
        unknown = np.isin(ids, self._source_vocabulary.unknowns).sum() * 2 >= max(len(ids), 1)
        unknown_prefix = np.isin(prefix, self._target_vocabulary.unknowns).any()
        return Line(texts, scores, words[0], cut, pieces, bool(unknown), bool(unknown_prefix))

    def best(self, lines: Texts) -> list[str]:
        return [line.texts[0] for line in self.lines(lines)]


def join_translations(
    each: Sequence[Translations], pieces: list[bytes], alpha: float
) -> list[tuple[str, float, list[list[int]], bool]]:
    """Returns the translations of a line, best first: text, score, ids of each piece, and whether
    the limit cut it.

    They are the first of all pieces together, the second of all, and so on, as often as the last
    that a piece has.

    Args:
        each: The translations of each piece. Those with infinite scores are none.
        alpha: Costs are divided by the length to the power alpha.
    """
    kept = [
        places if len(places := np.flatnonzero(np.isfinite(piece.scores))) else [0]
        for piece in each
    ]
    joined = []
    for rank in range(max(map(len, kept))):
        ranks = [
            (piece, places[min(rank, len(places) - 1)])
            for piece, places in zip(each, kept, strict=True)
        ]
        text = join_pieces([piece.texts[i].decode(errors="replace") for piece, i in ranks], pieces)
        costs = [float(piece.scores[i]) * (piece.lengths[i] + 1.0) ** alpha for piece, i in ranks]
        score = float(sum(costs) / (sum(piece.lengths[i] for piece, i in ranks) + 1.0) ** alpha)
        words = [piece.words[i, : piece.lengths[i]].tolist() for piece, i in ranks]
        joined.append((text, score, words, any(piece.cut[i] for piece, i in ranks)))
    return sorted(joined, key=lambda translation: translation[1])
