"""Defines the signatures of exports: of strings, with scores and attention, or of token ids."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import tensorflow as tf

from ..decoding.scoring import Scorer
from ..decoding.translator import Translator
from ..model.contract import Decodable
from ..text.batches import LONGEST, TOKENS, pad
from ..text.vocabulary import END, Vocabularies

SENTENCES = 128  # limit of the sentences in a slice
# Limit of the attention weights of a batch, padding included, because their JSON is large.
WEIGHTS = 2**20
_LIMITS = {"sentence_tokens": LONGEST, "slice_sentences": SENTENCES, "slice_tokens": TOKENS}
_PAIRS = [tf.TensorSpec([None], tf.string, name=name) for name in ("sources", "targets")]

Tensors = tuple[tf.Tensor | tf.RaggedTensor, ...]


class Signatures(tf.Module):
    """Computes the signatures of an exported model.

    Any bytes are accepted as a sentence. Translation and attention read only its first `LONGEST`
    tokens. `score` returns infinity for a longer one. A batch is computed in slices, so memory does
    not limit its size.
    """

    # The limits that are in the graph, by name.
    limits: ClassVar[dict[str, int]] = _LIMITS | {"weights": WEIGHTS}

    def __init__(self, vocabularies: Vocabularies, model: Decodable, translator: Translator):
        super().__init__()
        self._source_vocabulary, self._target_vocabulary = vocabularies
        # Bound methods are not tracked: the translator tracks the variables, and tracking the model
        # would save copies.
        self._scorer = Scorer(vocabularies, model, translator.options)
        self._attend = getattr(model, "attention", None)
        self._translator = translator
        if self._attend:  # an attribute, since a SavedModel gets every tf.function of the object
            self.attention = tf.function(self._attention, input_signature=_PAIRS, autograph=False)

    @property
    def functions(self) -> dict[str, tf.types.experimental.PolymorphicFunction]:
        """The functions by the names of their signatures."""
        return {
            "serving_default": self.serve,
            "n_best": self.n_best,
            "with_prefix": self.with_prefix,
            "score": self.score,
            "tokens": self.tokens,
            **({"attention": self.attention} if self._attend else {}),
        }

    def sentences(self, lengths: Sequence[int]) -> list[bytes]:
        """Returns a text of about this many source tokens for each length, to try the model."""
        ids = tf.ragged.range(tf.constant(lengths)) % (self._source_vocabulary.size - 2) + 2
        return self._source_vocabulary.decode(ids).numpy().tolist()

    @tf.function(input_signature=_PAIRS[:1], autograph=False)
    def serve(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the best translation of each of `sources` `[batch]`, its score and whether
        anything was cut.

        `source_cut` says that only the first `LONGEST` tokens of the source were translated,
        `translation_cut` that the translation reached the limit of its length.
        """
        return _best(*self._translate(sources))

    @tf.function(
        input_signature=[_PAIRS[0], tf.TensorSpec([None], tf.string, name="prefixes")],
        autograph=False,
    )
    def with_prefix(self, sources: tf.Tensor, prefixes: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what `serve` does, of translations that begin with `prefixes` `[batch]`.

        An empty prefix is none. One that is longer than its translation may be is cut, as
        `translation_cut` says.
        """
        return _best(*self._translate(*_as_many(sources, prefixes, "prefixes")))

    @tf.function(input_signature=_PAIRS[:1], autograph=False)
    def n_best(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the beam of each of `sources` `[batch]`: `translations` and `scores` `[batch,
        beam]`, best first.

        Only the first `counts` `[batch]` of them are translations. The rest are empty with score 0,
        since JSON has no infinity. `source_cut` `[batch]` and `translation_cut` `[batch, beam]` are
        those of `serve`.
        """
        texts, scores, cut, source_cut = self._translate(sources)
        found = tf.math.is_finite(scores)
        counts = tf.reduce_sum(tf.cast(found, tf.int32), 1)
        return {
            "translations": texts,
            "scores": tf.where(found, scores, 0.0),
            "counts": counts,
            "source_cut": source_cut,
            "translation_cut": cut,
        }

    @tf.function(input_signature=_PAIRS, autograph=False)
    def score(self, sources: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores `targets` as translations of `sources`, `[batch]`; inf beyond `LONGEST` tokens."""
        ids = self._scorer.ids(*_as_many(sources, targets, "targets"))
        lengths = tf.maximum(*(each.row_lengths() for each in ids))
        read = tuple(each[:, :LONGEST] for each in ids)
        (scores,) = in_slices(
            lambda *sides: (self._scorer.scores(*sides),),
            read,
            tf.minimum(lengths, LONGEST),
            (tf.zeros([0]),),
        )
        return {"scores": tf.where(lengths <= LONGEST, scores, float("inf"))}

    @tf.function(input_signature=_PAIRS[:1], autograph=False)
    def tokens(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Counts the tokens that are read of each source and that its translation may have."""
        lengths = tf.cast(self._translator.encode(sources)[0].row_lengths(), tf.int32)
        return {
            "source_tokens": lengths,
            "translation_tokens": self._translator.options.limits(lengths),
        }

    def _attention(self, sources: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns how much the model attends to each source token when it predicts each target
        token.

        Returns:
            `attention` `[batch, target_time, source_time]`, and the tokens `source_tokens` `[batch,
            source_time]` and `target_tokens` `[batch, target_time]` with their ends. Padding is
            empty and has weight 0.
        """
        ids = tuple(
            each[:, :LONGEST] for each in self._scorer.ids(*_as_many(sources, targets, "targets"))
        )
        source_time, target_time = (1 + tf.cast(each.bounding_shape(1), tf.int64) for each in ids)
        count = ids[0].nrows() * source_time * target_time
        few = (
            f"attention has at most {WEIGHTS} weights (sentences x source tokens x target tokens); "
            "ask for fewer"
        )
        with tf.control_dependencies([tf.debugging.Assert(count <= WEIGHTS, [few])]):
            (source, source_mask), (target, target_mask) = map(pad, ids)
        lengths = tf.maximum(*(each.row_lengths() for each in ids))
        nothing = tf.zeros([0, tf.shape(target)[1], tf.shape(source)[1]])

        def attend(*sides: tf.RaggedTensor) -> Tensors:
            (source, source_mask), (target, target_mask) = map(pad, sides)
            found = self._attend(source, source_mask, target)
            found *= target_mask[:, :, tf.newaxis]  # on padding of the source it is 0
            _, rows, columns = tf.unstack(tf.shape(nothing) - tf.shape(found))
            return (tf.pad(found, [[0, 0], [0, rows], [0, columns]]),)

        (weights,) = in_slices(attend, ids, lengths, (nothing,))
        return {
            "attention": weights,
            "source_tokens": tf.where(source_mask > 0, self._source_vocabulary.tokens(source), ""),
            "target_tokens": tf.where(target_mask > 0, self._target_vocabulary.tokens(target), ""),
        }

    def _translate(self, sources: tf.Tensor, prefixes: tf.Tensor | None = None) -> Tensors:
        ids, source_cut = self._translator.encode(sources)
        inputs = (ids,) if prefixes is None else (ids, self._target_vocabulary.encode(prefixes))
        beam = self._translator.options.hypotheses
        nothing = (tf.fill([0, beam], ""), tf.zeros([0, beam]), tf.fill([0, beam], value=False))

        def translate(rows: tf.RaggedTensor, begun: tf.RaggedTensor | None = None) -> Tensors:
            found = self._translator.translate(rows, prefixes=begun)
            return found.texts, found.scores, found.cut

        texts, scores, cut = in_slices(translate, inputs, ids.row_lengths(), nothing)
        return texts, scores, cut, source_cut


def _best(
    texts: tf.Tensor, scores: tf.Tensor, cut: tf.Tensor, source_cut: tf.Tensor
) -> dict[str, tf.Tensor]:
    return {
        "translations": texts[:, 0],
        "scores": scores[:, 0],
        "source_cut": source_cut,
        "translation_cut": cut[:, 0],
    }


def _as_many(sources: tf.Tensor, others: tf.Tensor, name: str) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both, whose sizes are compared before any other operation fails on them."""
    equal = tf.debugging.assert_equal(
        tf.size(sources), tf.size(others), f"give as many {name} as sources"
    )
    with tf.control_dependencies([equal]):
        return tf.identity(sources), tf.identity(others)


class IdSignatures(tf.Module):
    """Computes the signature of an export of token ids, with operations of TensorFlow alone."""

    limits: ClassVar[dict[str, int]] = _LIMITS

    def __init__(self, source_words: int, translator: Translator):
        super().__init__()
        self._size = source_words
        self._options = translator.options
        # Track the variables alone: a bound method is not tracked, and the translator would bring
        # the tokenizers along.
        self._search = translator.search
        self._variables = list(translator.variables)

    @property
    def functions(self) -> dict[str, tf.types.experimental.PolymorphicFunction]:
        return {"translate_ids": self.translate_ids}

    def sentences(self, lengths: Sequence[int]) -> np.ndarray:
        """Returns a row of this many source tokens for each length, padded, to try the model on."""
        places = np.arange(max(lengths))
        return np.where(
            places < np.array(lengths)[:, np.newaxis], 2 + places % (self._size - 2), END
        ).astype(np.int32)

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="sources")], autograph=False
    )
    def translate_ids(self, sources: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what `Signatures.serve` does, for token ids and with token ids as `translations`.

        Args:
            sources: `[batch, source_time]`. A sentence ends at its first 0, or at the end of its
                row.

        Returns:
            `translations` `[batch, target_time]`, the ids of the best translations, padded with 0;
            `scores`, `source_cut` and `translation_cut` `[batch]`.
        """
        known = tf.reduce_all((sources >= 0) & (sources < self._size))
        with tf.control_dependencies(
            [tf.debugging.Assert(known, [f"give source ids from 0 to {self._size - 1}"])]
        ):
            lengths = tf.reduce_sum(tf.math.cumprod(tf.cast(sources != END, tf.int32), 1), 1)
        read = tf.minimum(lengths, LONGEST)
        longest = tf.maximum(tf.reduce_max(self._options.limits(read)), 0)

        def translate(rows: tf.RaggedTensor) -> Tensors:
            found = self._search(rows)
            words = found.words[:, 0]
            padding = [[0, 0], [0, longest - tf.shape(words)[1]]]
            return tf.pad(words, padding, constant_values=END), found.scores[:, 0], found.cut[:, 0]

        nothing = (tf.zeros([0, longest], tf.int32), tf.zeros([0]), tf.fill([0], value=False))
        ids = tf.RaggedTensor.from_tensor(sources[:, :LONGEST], read)
        words, scores, cut = in_slices(translate, (ids,), read, nothing)
        used = tf.reduce_sum(tf.cast(tf.reduce_any(words != END, 0), tf.int32))
        return {
            "translations": words[:, :used],
            "scores": scores,
            "source_cut": lengths > LONGEST,
            "translation_cut": cut,
        }


def in_slices(
    function: Callable[..., Tensors], inputs: Tensors, lengths: tf.Tensor, nothing: Tensors
) -> Tensors:
    """Returns the results of a function for every row, in the order of the rows.

    A slice holds rows of similar lengths. Its size is limited by `SENTENCES` and `TOKENS`.

    Args:
        function: Maps tensors `[rows, ...]` to tensors `[rows, ...]`, each row for itself.
        inputs: Tensors `[batch, ...]`, which may be ragged.
        lengths: Tokens of each row, `[batch]`.
        nothing: The results for no rows, `[0, ...]`.
    """
    lengths = tf.cast(lengths, tf.int32)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    batch = tf.shape(lengths)[0]

    def advance(start: tf.Tensor, found: Tensors) -> tuple[tf.Tensor, Tensors]:
        longest = lengths[order[start]] + 1  # with the end of the sentence
        end = tf.minimum(batch, start + tf.clip_by_value(TOKENS // longest, 1, SENTENCES))
        added = function(*(tf.gather(x, order[start:end]) for x in inputs))
        return end, tuple(tf.concat(pair, 0) for pair in zip(found, added, strict=True))

    _, found = tf.while_loop(
        lambda start, _: start < batch,
        advance,
        (tf.constant(0), nothing),
        (tf.TensorShape([]), tuple(tf.TensorShape([None, *x.shape[1:]]) for x in nothing)),
        parallel_iterations=1,
    )
    position = tf.math.invert_permutation(order)
    return tuple(tf.gather(x, position) for x in found)
