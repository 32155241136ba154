"""Translation of strings: vocabularies, model and search in one `tf.Module`.

A sentence may contain any bytes. Bytes that are not UTF-8 become unknown words. Only the first `LONGEST` tokens are
translated, so that no sentence exhausts the memory.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, token_pieces
from ..text.vocabulary import END, Vocabulary
from .sampling import Sampling, sample
from .search import Hypotheses, beam_search


class Translations(NamedTuple):
    """Translations of a batch, best first."""

    texts: tf.Tensor  # [batch, beam] strings without line breaks
    scores: tf.Tensor  # [batch, beam], cost / length**alpha; infinite where the search found no translation
    truncated: tf.Tensor  # [batch], whether the sentence has more than LONGEST tokens
    words: tf.Tensor  # [batch, beam, time] ids, padded with the end
    lengths: tf.Tensor  # [batch, beam], without the end


class Translator(tf.Module):
    """Translates raw strings.

    Args:
        source_vocabulary: Encodes the source.
        target_vocabulary: Decodes the target.
        model: Predicts the words.
        beam_size: Hypotheses kept in the search.
        alpha: Translations are ranked by their cost divided by their length, the end included, to the power alpha.
        max_length: Longest translation, in tokens.
        sampling: Draws `beam_size` random translations instead of searching.

    Attributes:
        truncated: Number of lines so far of which `n_best` and `best` translated only the first `LONGEST` tokens.
    """

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        model: Decodable,
        *,
        beam_size: int,
        alpha: float,
        max_length: int,
        sampling: Sampling | None = None,
    ):
        super().__init__()
        self._source_vocabulary, self._target_vocabulary = source_vocabulary, target_vocabulary
        # A tracked model would save each Keras variable and a copy of it, and servers without Python restore only the
        # copy. So track the TensorFlow variables, and keep only bound methods of the model, which are not tracked.
        self._encode, self._decode_step, self._first_word = model.encode, model.decode_step, model.first_word
        self._variables = [variable.value for variable in model.variables]
        self._beam_size, self._alpha, self._max_length = beam_size, alpha, max_length
        self._sampling = sampling
        self._drawn = tf.Variable(0, dtype=tf.int64, trainable=False) if sampling else None  # batches so far
        self.truncated = 0

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sources")], autograph=False)
    def translate(self, sources: tf.Tensor) -> Translations:
        """Returns the translations of `sources` `[batch]`. An empty source has one translation, which is empty."""
        all_ids = self._source_vocabulary.encode(sources)
        ids = all_ids[:, :LONGEST]
        found = self._search(ids)
        words = tf.RaggedTensor.from_tensor(
            tf.reshape(found.words, [-1, self._max_length]), tf.reshape(found.lengths, [-1])
        )
        decoded = tf.strings.regex_replace(self._target_vocabulary.decode(words), r"[\r\n]+", " ")
        texts = tf.reshape(decoded, tf.shape(found.scores))
        empty = (ids.row_lengths() == 0)[:, tf.newaxis]
        only_first = tf.where(tf.range(self._beam_size) == 0, 0.0, float("inf"))
        return Translations(
            tf.where(empty, "", texts),
            tf.where(empty, only_first, found.scores),
            all_ids.row_lengths() > LONGEST,
            found.words,
            tf.where(empty, 0, found.lengths),
        )

    def n_best(self, lines: Sequence[str | bytes]) -> list[list[tuple[str, float]]]:
        """Returns the translations of each line with their scores, best first, at least one for each line."""
        beams = []
        for texts, scores, *_ in self._translated(lines):
            count = max(1, np.isfinite(scores).sum())  # the best come first
            found = zip(texts[:count], scores[:count], strict=True)
            beams.append([(text.decode(errors="replace"), float(score)) for text, score in found])
        return beams

    def best(self, lines: Sequence[str | bytes]) -> list[str]:
        """Returns the best translation of each line."""
        return [text for text, _ in self.best_with_words(lines)]

    def best_with_words(self, lines: Sequence[str | bytes]) -> list[tuple[str, list[int]]]:
        """Returns the best translation of each line, and its ids without the end."""
        return [
            (texts[0].decode(errors="replace"), words[0, : lengths[0]].tolist())
            for texts, _, _, words, lengths in self._translated(lines)
        ]

    def _translated(self, lines: Sequence[str | bytes]) -> Iterator[tuple[np.ndarray, ...]]:
        """Yields the fields of `Translations` for each line."""
        tokens = self._source_vocabulary.encode(tf.constant(lines, tf.string)).row_lengths().numpy()
        lengths = np.minimum(tokens, LONGEST) + 1
        for start, end in token_pieces(lengths):
            found = [field.numpy() for field in self.translate(tf.constant(lines[start:end], tf.string))]
            self.truncated += int(found[2].sum())
            yield from zip(*found, strict=True)

    def _search(self, ids: tf.RaggedTensor) -> Hypotheses:
        state, memory = self._encode(*pad(ids), self._max_length)
        state = tf.nest.map_structure(lambda x: tf.repeat(x, self._beam_size, axis=0), state)

        common = {
            "batch": ids.nrows(out_type=tf.int32),
            "alpha": self._alpha,
            "max_length": self._max_length,
            "start": self._first_word,
            "end": END,
        }
        if self._sampling:
            draw = self._drawn.assign_add(1)
            return sample(self._decode_step, state, memory, self._sampling, draw, samples=self._beam_size, **common)
        return beam_search(self._decode_step, state, memory, beam_size=self._beam_size, **common)
