"""Alignments: the source token that each token of a translation attends to most."""

import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..model.contract import Decodable
from ..text.batches import pad, ragged, rows_of
from ..text.vocabulary import Vocabulary
from .batch_parallel import map_batches
from .translator import Line


class Aligner:
    """Aligns translations with their sources."""

    def __init__(
        self, source: Vocabulary, model: Decodable, sentences: int, layer: int | None = None
    ):
        if not hasattr(model, "attention"):
            raise UserError("an ensemble has an attention for each model; give -m one to align")
        layers = getattr(model, "attention_layers", 1)
        if layer and layer > layers:
            raise UserError(
                f"--alignment_layer is {layer}, and this model attends in {layers} layers; "
                "give another, or leave it out"
            )
        given = {"layer": layer} if layer and layers > 1 else {}
        self._vocabulary = source
        self._sentences = sentences
        attention = functools.partial(model.attention, **given)
        self._attention = tf.function(attention, reduce_retracing=True, autograph=False)

    def align(self, lines: Sequence[Line]) -> list[str]:
        """Returns the links `i-j` from source token i to target token j of each line; none for a
        line in pieces.
        """
        whole = [line for line in lines if len(line.pieces) == 1]
        sources = rows_of(
            self._vocabulary.encode(tf.constant([line.pieces[0] for line in whole], tf.string))
        )
        targets = [np.array(line.words[0], np.int32) for line in whole]

        def align(numbers: np.ndarray) -> list[str]:
            return self._align(*([side[i] for i in numbers] for side in (sources, targets)))

        lengths = np.array(
            [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)], np.int64
        )
        found = iter(map_batches(align, lengths, self._sentences))
        return [next(found) if len(line.pieces) == 1 else "" for line in lines]

    def _align(self, *ids: list[np.ndarray]) -> list[str]:
        (source, source_mask), (target, _) = (pad(ragged(side)) for side in ids)
        weights = self._attention(source, source_mask, target).numpy()
        found = []
        for row, source, target in zip(weights, *ids, strict=True):
            links = row[: len(target), : len(source)].argmax(1) if len(source) else []
            found.append(" ".join(f"{i}-{j}" for j, i in enumerate(links)))
        return found
