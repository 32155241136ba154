"""Alignments: which source tokens a model attends to when it predicts the tokens of a translation."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, token_pieces
from ..text.vocabulary import Vocabulary


class Alignment(NamedTuple):
    """The attention weights of a translation. Both sides are tokens with their end."""

    source: list[str]
    target: list[str]
    weights: np.ndarray  # [target, source]; each row sums to 1

    def pharaoh(self) -> str:
        """Returns `i-j` for each target token j and the source token i with the largest weight, without the ends."""
        inner = self.weights[:-1, :-1]
        sources = inner.argmax(1) if inner.size else []
        return " ".join(f"{i}-{j}" for j, i in enumerate(sources))

    def as_json(self) -> str:
        """Returns a JSON object with `source`, `target` and `weights`, in one line."""
        weights = [[round(float(weight), 6) for weight in row] for row in self.weights]
        return json.dumps({"source": self.source, "target": self.target, "weights": weights}, ensure_ascii=False)


class Aligner:
    """Aligns translations with their sources.

    Args:
        source_vocabulary: Encodes the sources.
        target_vocabulary: Names the tokens of the translations.
        model: The model that made the translations.

    Raises:
        UserError: The model has no attention weights to align by.
    """

    def __init__(self, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, model: Decodable):
        if not hasattr(model, "attention"):
            raise UserError(
                "alignments come from the attention of an RNN; a Transformer has many attentions and an ensemble many "
                "models; give -m one RNN"
            )
        self._source_vocabulary, self._target_vocabulary = source_vocabulary, target_vocabulary
        self._attention = tf.function(model.attention, reduce_retracing=True, autograph=False)

    def align(self, lines: Sequence[str | bytes], translations: Sequence[Sequence[int]]) -> list[Alignment]:
        """Returns the alignment of each line with the ids of its translation, the end not counted."""
        ids = self._source_vocabulary.encode(tf.constant(lines, tf.string))[:, :LONGEST]
        lengths = np.maximum(ids.row_lengths().numpy(), list(map(len, translations))) + 1
        pieces = token_pieces(lengths)
        return [found for start, end in pieces for found in self._align(ids[start:end], translations[start:end])]

    def _align(self, ids: tf.RaggedTensor, translations: Sequence[Sequence[int]]) -> list[Alignment]:
        source, source_mask = pad(ids)
        target, _ = pad(tf.ragged.constant(translations, tf.int32, inner_shape=()))
        weights = self._attention(source, source_mask, target).numpy()
        sides = (self._source_vocabulary.tokens(source).numpy(), self._target_vocabulary.tokens(target).numpy())
        found = []
        for row, (length, translation) in enumerate(zip(ids.row_lengths().numpy(), translations, strict=True)):
            sizes = (length + 1, len(translation) + 1)  # with the ends
            tokens = [
                [token.decode(errors="replace") for token in side[row, :size]]
                for side, size in zip(sides, sizes, strict=True)
            ]
            found.append(Alignment(*tokens, weights[row, : sizes[1], : sizes[0]]))
        return found
