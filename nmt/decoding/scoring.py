"""Scores given translations, and aligns them with their sources by attention."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..model.contract import Decodable
from ..text.batches import LONGEST, pad, ragged, rows_of
from ..text.vocabulary import END, Vocabularies
from .batch_parallel import map_batches
from .options import DecodingOptions
from .translator import Line


class TokenCosts(NamedTuple):
    """The score of a target, and its tokens with their costs in nats, the end included."""

    score: float
    tokens: list[str]
    costs: list[float]


class Scorer:
    """Scores pairs of a sentence and its translation.

    A score is the cost, the negative log-probability of the target with its end in nats, divided by
    the length, the end included, to the power `normalization_alpha`.
    """

    def __init__(self, vocabularies: Vocabularies, model: Decodable, options: DecodingOptions):
        self._options = options
        source, target = vocabularies
        self._encoders = source.encode, target.ids_of_units if options.units else target.encode
        self._tokens = target.tokens
        self._word_costs = lambda source, target: model.word_costs(*pad(source), *pad(target))
        ids = tf.RaggedTensorSpec([None, None], tf.int32)
        self._traced_costs = tf.function(self._word_costs, [ids, ids], autograph=False)

    def ids(self, sources: tf.Tensor, targets: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Returns the ids `[batch, (tokens)]` of strings `[batch]`, without the ends."""
        return tuple(
            encode(side) for encode, side in zip(self._encoders, (sources, targets), strict=True)
        )

    def scores(self, source: tf.RaggedTensor, target: tf.RaggedTensor) -> tf.Tensor:
        """Returns the score of each target, `[batch]`.

        Both are ids `[batch, (tokens)]`, at most `LONGEST`.
        """
        lengths = tf.cast(target.row_lengths() + 1, tf.float32)
        costs = tf.reduce_sum(self._word_costs(source, target), 1)
        return costs / lengths**self._options.normalization_alpha

    def scores_of(self, pairs: Sequence[tuple[bytes, bytes]]) -> np.ndarray:
        """Returns the score of each pair, `[batch]`; see `scores_of_ids`."""
        return self.scores_of_ids(*self._rows(pairs))

    def token_costs(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[TokenCosts]:
        """Returns the costs of the tokens of each pair; see `scores_of_ids`."""
        source, target = self._rows(pairs)
        found = []
        for ids, costs in zip(target, self._token_costs(source, target), strict=True):
            words = self._tokens(tf.constant([*ids, END])).numpy()
            tokens = [word.decode(errors="replace") for word in words]
            found.append(TokenCosts(self._score(costs), tokens, costs.tolist()))
        return found

    def scores_of_ids(self, *sides: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the score of each pair of ids: inf if a side has more than `LONGEST`, NaN if the
        weights overflow.
        """
        return np.array([self._score(costs) for costs in self._token_costs(*sides)])

    def _rows(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[list[np.ndarray]]:
        sides = (tf.constant(side, tf.string) for side in zip(*pairs, strict=True))
        return list(map(rows_of, self.ids(*sides)))

    def _score(self, costs: np.ndarray) -> float:
        return float(costs.sum() / len(costs) ** self._options.normalization_alpha)

    def _token_costs(
        self, source: Sequence[np.ndarray], target: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        found = [np.full(len(ids) + 1, np.inf) for ids in target]
        longest = np.array([max(map(len, pair)) for pair in zip(source, target, strict=True)])
        scored = np.flatnonzero(longest <= LONGEST)

        def costs(numbers: np.ndarray) -> np.ndarray:
            pairs = [(source[i], target[i]) for i in scored[numbers]]
            costs = self._traced_costs(*map(ragged, zip(*pairs, strict=True))).numpy()
            return np.where(np.isfinite(costs), costs, np.nan)

        each = map_batches(costs, longest[scored] + 1, self._options.batch_size)
        for number, row in zip(scored, each, strict=True):
            found[number] = row[: len(found[number])]
        return found


class Aligner:
    """Aligns translations with their sources."""

    def __init__(self, model: Decodable, sentences: int, layer: int | None = None):
        if not hasattr(model, "attention"):
            raise UserError("an ensemble has an attention for each model; give -m one to align")
        layers = getattr(model, "attention_layers", 1)
        if layer and layer > layers:
            raise UserError(
                f"--alignment_layer is {layer}, and this model attends in {layers} layers; "
                "give another, or leave it out"
            )
        given = {"layer": layer} if layer and layers > 1 else {}
        self._sentences = sentences
        attention = functools.partial(model.attention, **given)
        self._attention = tf.function(attention, reduce_retracing=True, autograph=False)

    def align(self, lines: Sequence[Line]) -> list[str]:
        """Returns the links `i-j` from source token i to target token j of each line; none for a
        line in pieces.
        """
        whole = [line for line in lines if len(line.pieces) == 1]
        sources = [line.pieces[0] for line in whole]
        targets = [np.array(line.words[0], np.int32) for line in whole]

        def align(numbers: np.ndarray) -> list[str]:
            return self._align([sources[i] for i in numbers], [targets[i] for i in numbers])

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
