"""Alignments: which source tokens a model attends to when it predicts the tokens of a translation."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..model.contract import Decodable
from ..text.batches import pad, ragged, rows_of
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


_NONE = Alignment([], [], np.zeros([0, 0], np.float32))


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
        """Returns the alignment of each line with its best translation. That of a line in several pieces is empty."""
        whole = [line for line in lines if len(line.pieces) == 1]
        pieces = [line.pieces[0] for line in whole]
        targets = [np.array(line.words[0], np.int32) for line in whole]
        sources = rows_of(self._vocabularies.source.encode(tf.constant(pieces, tf.string)))

        def align(numbers: np.ndarray) -> list[Alignment]:
            return self._align([sources[i] for i in numbers], [targets[i] for i in numbers])

        lengths = np.array([max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)], np.int64)
        found = iter(map_batches(align, lengths, self._sentences))
        return [next(found) if len(line.pieces) == 1 else _NONE for line in lines]

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
