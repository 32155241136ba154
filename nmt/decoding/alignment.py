"""Alignments: which source tokens a model attends to when it predicts the tokens of a translation."""

import itertools
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, ragged, rows_of
from ..text.vocabulary import Vocabularies
from .side_by_side import map_batches
from .translator import Line


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
    """Aligns translations with their sources."""

    def __init__(self, vocabularies: Vocabularies, model: Decodable, sentences: int):
        if not hasattr(model, "attention"):
            raise UserError(
                "alignments come from the attention of an RNN; a Transformer has many attentions and an ensemble many "
                "models; give -m one RNN"
            )
        self._vocabularies, self._sentences = vocabularies, sentences
        self._attention = tf.function(model.attention, reduce_retracing=True, autograph=False)

    def align(self, lines: Sequence[Line]) -> list[Alignment]:
        """Returns the alignment of each line with its best translation. Pieces are aligned each for itself."""
        pieces = [piece for line in lines for piece in line.pieces]
        targets = [np.array(words, np.int32) for line in lines for words in line.words]
        sources = [ids[:LONGEST] for ids in rows_of(self._vocabularies.source.encode(tf.constant(pieces, tf.string)))]

        def align(numbers: np.ndarray) -> list[Alignment]:
            return self._align([sources[i] for i in numbers], [targets[i] for i in numbers])

        lengths = np.array([max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)], np.int64)
        found = iter(map_batches(align, lengths, self._sentences))
        return [joined(list(itertools.islice(found, len(line.pieces)))) for line in lines]

    def _align(self, *ids: list[np.ndarray]) -> list[Alignment]:
        (source, source_mask), (target, _) = (pad(ragged(side)) for side in ids)
        weights = self._attention(source, source_mask, target).numpy()
        sides = [each.tokens(ids).numpy() for each, ids in zip(self._vocabularies, (source, target), strict=True)]
        found = []
        for row, pair in enumerate(zip(*ids, strict=True)):
            sizes = [len(side) + 1 for side in pair]  # with the ends
            tokens = [
                [token.decode(errors="replace") for token in side[row, :n]]
                for side, n in zip(sides, sizes, strict=True)
            ]
            found.append(Alignment(*tokens, weights[row, : sizes[1], : sizes[0]]))
        return found


def joined(pieces: Sequence[Alignment]) -> Alignment:
    """Returns the alignment of a line from those of its pieces.

    Only the last piece keeps its ends. What a word attends to the end of another piece counts for the end of the line.
    """
    if len(pieces) == 1:
        return pieces[0]
    weights = np.zeros(sum(np.array(piece.weights.shape) - 1 for piece in pieces) + 1, np.float32)
    row = column = 0
    for number, piece in enumerate(pieces, 1):
        rows, columns = piece.weights.shape
        rows -= number < len(pieces)
        weights[row : row + rows, column : column + columns - 1] = piece.weights[:rows, :-1]
        weights[row : row + rows, -1] = piece.weights[:rows, -1]
        row, column = row + rows, column + columns - 1
    source = [token for piece in pieces for token in piece.source[:-1]] + pieces[-1].source[-1:]
    target = [token for piece in pieces for token in piece.target[:-1]] + pieces[-1].target[-1:]
    return Alignment(source, target, weights)
