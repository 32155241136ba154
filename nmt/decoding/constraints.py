"""Constrains the next word in search and sampling: prefixes, lengths, forbidden words.

A word that is not allowed gets the logit -inf. The normalizer stays, so the costs of translations
are those of the model.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..model.contract import DecodeStep, Memory, NextWords, State
from ..text.batches import pad
from ..text.vocabulary import END
from .options import DecodingOptions


def constrain(
    step: DecodeStep,
    state: State,
    memory: Memory,
    options: DecodingOptions,
    unknowns: Sequence[int],
    limits: tf.Tensor,
    prefixes: tf.RaggedTensor | None = None,
) -> tuple[DecodeStep, State, Memory]:
    """Returns a step that allows only what the options and the prefixes allow, and what it starts
    with.

    Without constraints, all three are those given. Otherwise the state also holds the number of
    words before each step, `[rows]`, and the words themselves if the options ask for them. The
    memory also holds the prefixes.

    Args:
        unknowns: Ids that decode to the unknown word.
        limits: Words of the longest translations, `[batch]`.
        prefixes: Words that translations begin with, `[batch, (words)]`, whatever the options
            forbid.
    """
    least = options.min_length
    size = options.no_repeat_ngram
    if prefixes is None and not (least or size or options.suppress_unknown):
        return step, state, memory
    width = tf.maximum(tf.reduce_max(limits), size) if size else 0
    history = tf.fill([tf.size(limits), width], -1)  # the words so far, the last at the right

    def constrained(
        words: tf.Tensor, state: State, memory: Memory
    ) -> tuple[NextWords, State, Memory]:
        (state, times, history) = state
        (memory, *prefixes) = memory
        (logits, normalizers), state, memory = step(words, state, memory)
        ids = np.arange(logits.shape[-1])
        forbidden = tf.constant(np.isin(ids, unknowns) & options.suppress_unknown)[tf.newaxis]
        if least:
            forbidden |= (times < least)[:, tf.newaxis] & (ids == END)
        if size:
            shifted = tf.concat([history[:, 1:], words[:, tf.newaxis]], 1)
            # The first step gets no word.
            history = tf.where(times[:, tf.newaxis] > 0, shifted, history)
            forbidden |= _repeats(history, size, len(ids))
        for prefix in prefixes:  # one or none
            place = tf.minimum(times, tf.shape(prefix)[1] - 1)
            hypotheses = tf.size(words) // tf.maximum(tf.shape(prefix)[0], 1)
            forced = tf.gather(tf.repeat(prefix, hypotheses, axis=0), place, batch_dims=1)[
                :, tf.newaxis
            ]
            forbidden = tf.where(forced == END, forbidden, ids != forced)
        logits = tf.where(forbidden, float("-inf"), logits)
        return NextWords(logits, normalizers), (state, times + 1, history), (memory, *prefixes)

    padded = [] if prefixes is None else [pad(prefixes)[0]]  # [batch, words + 1]
    return constrained, (state, tf.zeros_like(limits), history), (memory, *padded)


def _repeats(history: tf.Tensor, size: int, words: int) -> tf.Tensor:
    """Returns the words that would complete an n-gram of this size a second time, `[rows, words]`.

    `history` has the words so far, `[rows, width]`, the last at the right, after places with -1;
    `width` >= `size`.
    """
    rows, width = tf.unstack(tf.shape(history))
    count = width - size + 1  # places where an n-gram can begin
    lasts = history[:, size - 1 :]  # [rows, count], the last words of these n-grams
    seen = lasts >= 0
    for i in range(size - 1):  # the other words of an n-gram are the last ones of the hypothesis
        seen &= history[:, i : i + count] == history[:, count + i, tf.newaxis]
    places = tf.stack([tf.repeat(tf.range(rows), count), tf.reshape(tf.maximum(lasts, 0), [-1])], 1)
    none = tf.zeros([rows, words], tf.int32)
    seen = tf.cast(tf.reshape(seen, [-1]), tf.int32)
    return tf.tensor_scatter_nd_max(none, places, seen) > 0
