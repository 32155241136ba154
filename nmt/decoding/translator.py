"""Translates strings: vocabularies, model and search in one `tf.Module`.

A sentence may contain any bytes. Bytes that are not UTF-8 become unknown words. A sentence of more
than `LONGEST` tokens would exhaust the memory. A line is then translated in pieces, which are
joined. The graph reads only the first `LONGEST` tokens and says so.
"""

import functools
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
from .sampling import sample
from .search import Hypotheses, beam_search

Texts = Sequence[str | bytes]
_IDS = tf.RaggedTensorSpec([None, None], tf.int32)
_PIECES = 1 << 20  # more than a line has


class Translations(NamedTuple):
    """Translations of a batch, best first."""

    texts: tf.Tensor  # [batch, beam] strings without line breaks
    words: tf.Tensor  # [batch, beam, time] ids, padded with the end
    costs: tf.Tensor  # [batch, beam]; infinite where the search found no translation
    scores: tf.Tensor  # [batch, beam], cost / length**alpha
    cut: tf.Tensor  # [batch, beam], whether the limit of its length ended a translation
    lengths: tf.Tensor  # [batch, beam], without the end


class Line(NamedTuple):
    """The translations of a line, best first. There is at least one."""

    texts: list[str]
    scores: list[float]
    words: list[list[int]]  # ids of the best one without their end, for each piece
    cut: list[bool]  # whether the limit of its length ended each of them, in a piece at least
    pieces: list[np.ndarray]  # source ids; several if it was too long to be translated at once
    unknown: bool  # whether half of its tokens or more are unknown words
    unknown_prefix: bool  # whether what the translations begin with has unknown words


class _Piece(NamedTuple):
    """A line, or a part of a line that is too long to be translated at once."""

    text: bytes
    ids: np.ndarray
    prefix: np.ndarray  # ids that the translations begin with
    number: int  # decides the samples


class Translator(tf.Module):
    """Translates strings with a model and its vocabularies.

    It keeps what all steps of decoding read, so call `refresh` when the weights have changed.
    """

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
        self._compute_step_weights = model.step_weights
        weights = model.step_weights()
        structure = tf.nest.map_structure(lambda _: None, weights)
        self._pack = functools.partial(tf.nest.pack_sequence_as, structure)
        self._step_weights = [tf.Variable(x, trainable=False) for x in tf.nest.flatten(weights)]
        self.options = options

    def refresh(self) -> None:
        """Computes what steps of decoding read again, after the weights have changed."""
        weights = tf.nest.flatten(self._compute_step_weights())
        for variable, weight in zip(self._step_weights, weights, strict=True):
            variable.assign(weight)

    def encode(self, sources: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Returns ids `[batch, (tokens)]`, at most `LONGEST` each, and whether there are more."""
        ids = self._source_vocabulary.encode(sources)
        return ids[:, :LONGEST], ids.row_lengths() > LONGEST

    def translate(
        self,
        ids: tf.RaggedTensor,
        prefixes: tf.RaggedTensor | None = None,
        numbers: tf.Tensor | None = None,
    ) -> Translations:
        """Returns the translations of ids `[batch, (tokens)]`, with the arguments of `search`."""
        found = self.search(ids, prefixes, numbers)
        rows = tf.reshape(found.words, [-1, tf.shape(found.words)[2]])
        words = tf.RaggedTensor.from_tensor(rows, tf.reshape(found.lengths, [-1]))
        target = self._target_vocabulary
        texts = units(target, words) if self.options.units else target.decode(words)
        texts = tf.strings.regex_replace(texts, r"[\r\n]+", " ")
        return Translations(tf.reshape(texts, tf.shape(found.scores)), *found, found.lengths)

    def search(
        self,
        ids: tf.RaggedTensor,
        prefixes: tf.RaggedTensor | None = None,
        numbers: tf.Tensor | None = None,
    ) -> Hypotheses:
        """Returns the translations of ids `[batch, (tokens)]` as ids.

        An empty source without a prefix has one translation, which is empty.

        Args:
            ids: At most `LONGEST` for each sentence.
            prefixes: Ids that the translations begin with, `[batch, (tokens)]`. One that is longer
                than its translation may be is cut, as `cut` says.
            numbers: Number of each sentence, `[batch]`, if the options draw translations: it
                decides the samples.
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
        # As variables: a loop passes tensors of outside on from turn to turn, which takes time.
        step = self._make_step(self._pack(list(self._step_weights)))
        step, *start = constrain(step, state, memory, options, unknowns, limits, prefixes)
        if options.samples:
            found = sample(step, *start, options, numbers, limits=limits, start=self._first_word)
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

    def lines(self, lines: Texts, first: int = 0, prefixes: Texts | None = None) -> list[Line]:
        """Returns the translations of lines, computed in batches of similar lengths, several at a
        time.

        Args:
            first: Number of the first of them in its text. The number of a line decides its
                samples.
            prefixes: What the translation of each line begins with, or nothing if it is empty.
        """
        split = self._split(lines, first, prefixes)
        pieces = list(itertools.chain.from_iterable(split))
        found = iter(self._translate_pieces(pieces, prefixes is not None))
        return [self._join(line, list(itertools.islice(found, len(line)))) for line in split]

    def _split(self, lines: Texts, first: int, prefixes: Texts | None) -> list[list[_Piece]]:
        """Returns the pieces of each line: one, unless it is too long to be translated at once."""
        sources = self._source_ids(lines)
        begins = [np.zeros(0, np.int32)] * len(lines)
        if prefixes is not None:
            target = self._target_vocabulary
            encode = target.ids_of_units if self.options.units else target.encode
            begins = rows_of(encode(tf.constant(prefixes, tf.string)))
        found = []
        for number, (line, ids, begin) in enumerate(
            zip(lines, sources, begins, strict=True), first
        ):
            texts = [tf.compat.as_bytes(line)]
            rows = [ids]
            if len(ids) > LONGEST:
                texts = split_line(
                    texts[0], lambda piece: len(self._source_ids([piece])[0]) <= LONGEST
                )
                rows = self._source_ids(texts)
            own = [begin] + [begin[:0]] * (len(texts) - 1)  # only the first piece has the prefix
            numbers = range(number * _PIECES, number * _PIECES + len(texts))
            found.append(list(map(_Piece, texts, rows, own, numbers)))
        return found

    def _source_ids(self, lines: Texts) -> list[np.ndarray]:
        return rows_of(self._source_vocabulary.encode(tf.constant(lines, tf.string)))

    def _translate_pieces(self, pieces: Sequence[_Piece], has_prefixes: bool) -> list[Translations]:
        """Returns the translations of each piece, as arrays without the axis of the batch."""
        specs = {"ids": _IDS}
        if has_prefixes:
            specs["prefixes"] = _IDS
        if self.options.samples:
            specs["numbers"] = tf.TensorSpec([None], tf.int64)
        run = self._translate.get_concrete_function(**specs)

        def translate(batch: np.ndarray) -> list[Translations]:
            _, ids, prefixes, numbers = zip(*(pieces[i] for i in batch), strict=True)
            inputs = {"ids": ragged(ids), "prefixes": ragged(prefixes)}
            inputs["numbers"] = tf.constant(numbers, tf.int64)
            found = run(**{name: inputs[name] for name in specs})
            return list(map(Translations, *(field.numpy() for field in found)))

        lengths = np.array([len(piece.ids) + 1 for piece in pieces], np.int64)
        return map_batches(translate, lengths, self.options.batch_size)

    @tf.function(autograph=False)
    def _translate(self, **inputs: tf.Tensor | tf.RaggedTensor) -> Translations:
        return self.translate(**inputs)

    def _join(self, pieces: list[_Piece], found: list[Translations]) -> Line:
        """Returns the translations of a line from those of its pieces."""
        texts = [piece.text for piece in pieces]
        ends = [text + b" " for text in texts] if self.options.units else texts
        joined = join_translations(found, ends, self.options.normalization_alpha)
        translations, scores, words, cut = map(list, zip(*joined, strict=True))
        ids = [piece.ids for piece in pieces]
        unknown = np.isin(np.concatenate(ids), self._source_vocabulary.unknowns)
        is_unknown = bool(unknown.sum() * 2 >= max(len(unknown), 1))
        unknown_prefix = np.isin(pieces[0].prefix, self._target_vocabulary.unknowns).any()
        return Line(translations, scores, words[0], cut, ids, is_unknown, bool(unknown_prefix))


def join_translations(
    each: Sequence[Translations], pieces: list[bytes], alpha: float
) -> list[tuple[str, float, list[list[int]], bool]]:
    """Returns the translations of a line, best first: text, score, ids of each piece, and whether
    the limit cut it.

    They are the first of all pieces together, the second of all, and so on, as often as the last
    that a piece has.

    Args:
        each: The translations of each piece. Those with infinite costs are none.
        alpha: Costs are divided by the length to the power alpha.
    """
    found = [np.flatnonzero(np.isfinite(piece.costs)).tolist() or [0] for piece in each]
    joined = []
    for rank in range(max(map(len, found))):
        ranks = [places[min(rank, len(places) - 1)] for places in found]
        chosen = list(zip(each, ranks, strict=True))
        texts = [piece.texts[i].decode(errors="replace") for piece, i in chosen]
        words = [piece.words[i, : piece.lengths[i]].tolist() for piece, i in chosen]
        cost = sum(float(piece.costs[i]) for piece, i in chosen)
        score = cost / (sum(map(len, words)) + 1.0) ** alpha
        joined.append((join_pieces(texts, pieces), score, words, any(p.cut[i] for p, i in chosen)))
    return sorted(joined, key=lambda translation: translation[1])
