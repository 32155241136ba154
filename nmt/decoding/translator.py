"""Strings to strings: vocabularies, model and search in one module, which can be saved to serve on its own.

Any bytes are taken for a sentence: those that are not UTF-8 are unknown words, and of what comes after `LONGEST` tokens
nothing is read, since the memory it would take would take away that of the other sentences.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..storage.files import temporary_path
from ..text.batches import LONGEST, pad
from ..text.vocabulary import END, Vocabulary
from .search import Hypotheses, beam_search


class Translations(NamedTuple):
    """Translations of a batch, best first, and their costs over their length to the power alpha."""

    texts: tf.Tensor  # [batch, beam] strings of one line each
    scores: tf.Tensor  # [batch, beam], infinite where the search found fewer
    cut: tf.Tensor  # [batch], whether the sentence is longer than what was read of it


class Translator(tf.Module):
    """Translates raw strings.

    Args:
        source_vocabulary: Encodes the source.
        target_vocabulary: Decodes the target.
        model: Offers `encode`, `decode_step` and `first_word`, as `rnnsearch.RNNSearch` does.
        beam_size: Hypotheses kept in the search.
        alpha: Power of the length by which costs are divided to rank translations.
        max_length: Longest translation, in tokens.

    Attributes:
        cut: Number of lines so far of which `n_best` or `best` read the first `LONGEST` tokens only.
    """

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        model,
        *,
        beam_size: int,
        alpha: float,
        max_length: int,
    ):
        super().__init__()
        self._source_vocabulary, self._target_vocabulary = source_vocabulary, target_vocabulary
        # What is saved are TensorFlow's own variables: of Keras's a SavedModel has copies, and those that serve without
        # Python restore the copies only. As bound methods the model itself is not saved.
        self._encode, self._decode_step, self._first_word = model.encode, model.decode_step, model.first_word
        self._variables = [variable.value for variable in model.variables]
        self._beam_size, self._alpha, self._max_length = beam_size, alpha, max_length
        self.cut = 0

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sources")])
    def translate(self, sources: tf.Tensor) -> Translations:
        """Returns all translations found for each of `sources` `[batch]`; that of an empty one is empty."""
        whole = self._source_vocabulary.encode(sources)
        ids = whole[:, :LONGEST]
        found = self._search(ids)
        words = tf.RaggedTensor.from_tensor(
            tf.reshape(found.words, [-1, self._max_length]), tf.reshape(found.lengths, [-1])
        )
        decoded = tf.strings.regex_replace(self._target_vocabulary.decode(words), r"[\r\n]+", " ")
        texts = tf.reshape(decoded, tf.shape(found.scores))
        empty = (ids.row_lengths() == 0)[:, tf.newaxis]
        only_first = tf.where(tf.range(self._beam_size) == 0, 0.0, float("inf"))
        cut = whole.row_lengths() > LONGEST
        return Translations(tf.where(empty, "", texts), tf.where(empty, only_first, found.scores), cut)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sources")])
    def serve(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the best translation of each of `sources` `[batch]` and its score."""
        found = self.translate(sources)
        return {"translations": found.texts[:, 0], "scores": found.scores[:, 0]}

    def n_best(self, lines: Sequence[str | bytes]) -> list[list[tuple[str, float]]]:
        """Returns the translations found for each line with their scores, best first; there is always one."""
        texts, scores, cut = (found.numpy() for found in self.translate(tf.constant(lines, tf.string)))
        self.cut += int(cut.sum())
        beams = [enumerate(zip(*beam, strict=True)) for beam in zip(texts, scores, strict=True)]
        return [
            [(text.decode(errors="replace"), float(score)) for i, (text, score) in beam if i == 0 or np.isfinite(score)]
            for beam in beams
        ]

    def best(self, lines: Sequence[str | bytes]) -> list[str]:
        """Returns the best translation of each line."""
        return [beam[0][0] for beam in self.n_best(lines)]

    def _search(self, ids: tf.RaggedTensor) -> Hypotheses:
        state, memory = self._encode(*pad(ids), self._max_length)
        state, memory = tf.nest.map_structure(lambda x: tf.repeat(x, self._beam_size, axis=0), (state, memory))
        return beam_search(
            lambda words, state: self._decode_step(words, state, memory),
            state,
            batch=ids.nrows(out_type=tf.int32),
            beam_size=self._beam_size,
            alpha=self._alpha,
            max_length=self._max_length,
            start=self._first_word,
            end=END,
        )


def save_translator(translator: Translator, to: str | os.PathLike) -> None:
    """Writes a SavedModel whose default signature maps strings `[batch]` to strings and scores `[batch]`.

    Raises:
        UserError: Something is there already.
    """
    to = Path(to)
    if to.exists():
        raise UserError(f"{to} is there already; remove it or export to another place")
    temporary = temporary_path(to)
    try:
        tf.saved_model.save(translator, str(temporary), signatures=translator.serve)
        temporary.rename(to)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
