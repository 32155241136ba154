"""What an exported model computes: its signatures, from strings to strings, scores and attention weights."""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import uuid4

import tensorflow as tf

from ..decoding.translator import Translator
from ..model.contract import Decodable
from ..text.batches import LONGEST, TOKENS, pad
from ..text.vocabulary import Vocabulary
from .slices import SENTENCES, Tensors, in_slices

WEIGHTS = 2**20  # limit of the attention weights of a batch, padding included, because their JSON is large
_WAITING = 100  # batches that may wait for their turn when callers are joined
_PAIRS = [tf.TensorSpec([None], tf.string, name=name) for name in ("sources", "targets")]


class Joining(NamedTuple):
    """How the graph joins the requests of several callers into batches."""

    sentences: int  # limit of a batch; a larger request is computed alone
    timeout_ms: float  # longest time a request waits for others


class Signatures(tf.Module):
    """Computes the signatures of an exported model.

    Any bytes are accepted as a sentence. Translation and attention read only its first `LONGEST` tokens. `score`
    returns infinity for a longer one. A batch is computed in slices, so memory does not limit its size.

    Args:
        source_vocabulary: Encodes the sources.
        target_vocabulary: Encodes the targets.
        model: Computes costs, and attention weights if it has a method `attention`.
        translator: Translates with the same vocabularies and model.
        beam_size: Translations that `translator` returns for each sentence.
        alpha: Scores are costs over the length, the end included, to this power.
        joining: How requests of several callers are joined; by default, they are not.
    """

    def __init__(
        self,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        model: Decodable,
        translator: Translator,
        *,
        beam_size: int,
        alpha: float,
        joining: Joining | None = None,
    ):
        super().__init__()
        self._source_vocabulary, self._target_vocabulary = source_vocabulary, target_vocabulary
        # Bound methods are not tracked: the translator tracks the variables, and tracking the model would save copies.
        self._costs, self._attend = model.costs, getattr(model, "attention", None)
        self._translator, self._beam_size, self._alpha = translator, beam_size, alpha
        if self._attend:  # an attribute, since a SavedModel gets every tf.function of the object
            self.attention = tf.function(self._attention, input_signature=_PAIRS, autograph=False)
        self._translate, self._score = self._translations, self._scores
        if joining:
            self._translate = joined(self._translations, joining, "translate")
            self._score = joined(self._scores, joining, "score")

    @property
    def functions(self) -> dict[str, tf.types.experimental.PolymorphicFunction]:
        """The functions by the names of their signatures."""
        functions = {"serving_default": self.serve, "n_best": self.n_best, "score": self.score}
        return functions | ({"attention": self.attention} if self._attend else {})

    @property
    def limits(self) -> dict[str, int]:
        """The limits that are in the graph, by name."""
        return {"sentence_tokens": LONGEST, "slice_sentences": SENTENCES, "slice_tokens": TOKENS, "weights": WEIGHTS}

    def sentences(self, lengths: Sequence[int]) -> list[bytes]:
        """Returns one text of about this many source tokens for each length, to try the model on."""
        ids = [[2 + i % (self._source_vocabulary.size - 2) for i in range(length)] for length in lengths]
        return self._source_vocabulary.decode(tf.ragged.constant(ids, tf.int32)).numpy().tolist()

    @tf.function(input_signature=_PAIRS[:1], autograph=False)
    def serve(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the best translation of each of `sources` `[batch]` and its score."""
        texts, scores = self._translate(sources)
        return {"translations": texts[:, 0], "scores": scores[:, 0]}

    @tf.function(input_signature=_PAIRS[:1], autograph=False)
    def n_best(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the beam of each of `sources` `[batch]`: `translations` and `scores` `[batch, beam]`, best first.

        Only the first `counts` `[batch]` of them are translations. The rest are empty with score 0, since JSON has no
        infinity.
        """
        texts, scores = self._translate(sources)
        found = tf.math.is_finite(scores)
        counts = tf.reduce_sum(tf.cast(found, tf.int32), 1)
        return {"translations": texts, "scores": tf.where(found, scores, 0.0), "counts": counts}

    @tf.function(input_signature=_PAIRS, autograph=False)
    def score(self, sources: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the score of each of `targets` as translation of each of `sources`, `[batch]`.

        It is infinite if one of them has more than `LONGEST` tokens.
        """
        sources, targets = _equally_many(sources, targets)
        (scores,) = self._score(sources, targets)
        return {"scores": scores}

    def _attention(self, sources: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns how much the model attends to each source token when it predicts each target token.

        Returns:
            `attention` `[batch, target_time, source_time]`, and the tokens `source_tokens` `[batch, source_time]` and
            `target_tokens` `[batch, target_time]` with their ends. Padding is empty and has weight 0.

        Raises:
            tf.errors.InvalidArgumentError: There are more than `WEIGHTS` weights.
        """
        sources, targets = _equally_many(sources, targets)
        ids = [vocabulary.encode(side)[:, :LONGEST] for vocabulary, side in self._sides(sources, targets)]
        source_time, target_time = (1 + tf.cast(each.bounding_shape(1), tf.int64) for each in ids)
        count = tf.size(sources, tf.int64) * source_time * target_time
        few = f"attention has at most {WEIGHTS} weights (sentences x source tokens x target tokens); ask for fewer"
        with tf.control_dependencies([tf.debugging.Assert(count <= WEIGHTS, [few])]):
            (source, source_mask), (target, target_mask) = map(pad, ids)
        lengths = tf.maximum(*(each.row_lengths() for each in ids))
        nothing = tf.zeros([0, tf.shape(target)[1], tf.shape(source)[1]])
        (weights,) = in_slices(self._weights(nothing), (sources, targets), lengths, (nothing,))
        return {
            "attention": weights,
            "source_tokens": tf.where(source_mask > 0, self._source_vocabulary.tokens(source), ""),
            "target_tokens": tf.where(target_mask > 0, self._target_vocabulary.tokens(target), ""),
        }

    def _weights(self, like: tf.Tensor) -> Callable[..., Tensors]:
        """Returns a function from sentence pairs to attention weights as wide as `like`, 0 on padding."""

        def weights(*texts: tf.Tensor) -> Tensors:
            (source, source_mask), (target, target_mask) = (
                pad(vocabulary.encode(side)[:, :LONGEST]) for vocabulary, side in self._sides(*texts)
            )
            found = self._attend(source, source_mask, target)
            found *= target_mask[:, :, tf.newaxis] * source_mask[:, tf.newaxis]
            _, rows, columns = tf.unstack(tf.shape(like) - tf.shape(found))
            return (tf.pad(found, [[0, 0], [0, rows], [0, columns]]),)

        return weights

    def _translations(self, sources: tf.Tensor) -> Tensors:
        lengths = tf.minimum(self._source_vocabulary.encode(sources).row_lengths(), LONGEST)
        nothing = (tf.fill([0, self._beam_size], ""), tf.zeros([0, self._beam_size]))
        return in_slices(lambda rows: self._translator.translate(rows)[:2], (sources,), lengths, nothing)

    def _scores(self, sources: tf.Tensor, targets: tf.Tensor) -> Tensors:
        lengths = tf.maximum(
            *(vocabulary.encode(side).row_lengths() for vocabulary, side in self._sides(sources, targets))
        )
        short = lengths <= LONGEST

        def score(*texts: tf.Tensor) -> Tensors:
            source, target = (pad(vocabulary.encode(side)) for vocabulary, side in self._sides(*texts))
            return (self._costs(*source, *target) / tf.reduce_sum(target[1], -1) ** self._alpha,)

        texts = tuple(tf.where(short, side, "") for side in (sources, targets))
        (scores,) = in_slices(score, texts, tf.where(short, lengths, 0), (tf.zeros([0]),))
        return (tf.where(short, scores, float("inf")),)

    def _sides(self, sources: tf.Tensor, targets: tf.Tensor) -> list[tuple[Vocabulary, tf.Tensor]]:
        return [(self._source_vocabulary, sources), (self._target_vocabulary, targets)]


def _equally_many(sources: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both sides once they are checked, so that no other operation fails on them first."""
    equal = tf.debugging.assert_equal(tf.size(sources), tf.size(targets), "give as many targets as sources")
    with tf.control_dependencies([equal]):
        return tf.identity(sources), tf.identity(targets)


def joined(function: Callable[..., Tensors], joining: Joining, name: str) -> Callable[..., Tensors]:
    """Returns a function of tensors `[batch, ...]` that computes concurrent calls in one batch.

    TensorFlow identifies a queue by its name scope, and a process may have several models. So the scope is the name and
    a random id, chosen once for all uses of the returned function.
    """
    scope = f"{name}_{uuid4().hex}"
    batched = tf.nondifferentiable_batch_function(
        num_batch_threads=1,
        max_batch_size=joining.sentences,
        batch_timeout_micros=round(joining.timeout_ms * 1000),
        max_enqueued_batches=_WAITING,
    )(function)

    def together(inputs: Sequence[tf.Tensor]) -> Tensors:
        with tf.name_scope(scope):
            return batched(*inputs)

    def call(*inputs: tf.Tensor) -> Tensors:
        rows = tf.shape(inputs[0])[0]
        fits = (rows > 0) & (rows <= joining.sentences)
        return tf.cond(fits, lambda: together(inputs), lambda: function(*inputs))

    return call
