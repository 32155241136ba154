"""Runs beam search over any model that gives the log-probabilities of the next word.

The cost of a hypothesis is the sum of -log p over its words and its end. Its score is the cost
divided by its length, the end included, to the power alpha. Lower scores are better.

Each step extends the open hypotheses by every word. An extension by the end is finished if it is
among the `beam_size` cheapest extensions. Of the other extensions, the `beam_size` cheapest stay
open. The search of a sentence stops when it has `beam_size` finished hypotheses and no open one
would score better than the worst of them by ending now at no cost. A beam of one is greedy: it
stops at its first end. A hypothesis that reaches the limit of its sentence must end. It is cut if
the model preferred another word there.

The loops and their tensors stay in the graph. Sentences whose search has stopped leave the batch,
many at a time.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from ..model.contract import DecodeStep, Memory, State
from ..text.vocabulary import END

# Sentences leave only when this share of the batch has stopped, because leaving copies the rest.
_LEAST_SHARE = 1 / 8

# Words in a block, the best first. Maxima of multiples of 8 are fast, and a divisor of the
# vocabulary needs no padding, which would copy all logits.
_SIZES = (40, 32, 48, 24, 56, 64, 16)


class Hypotheses(NamedTuple):
    """The finished hypotheses of each sentence, best score first.

    Unused places have infinite cost and no words.
    """

    words: tf.Tensor  # [batch, beam, time] ids, padded with the end
    costs: tf.Tensor  # [batch, beam]
    scores: tf.Tensor  # [batch, beam]
    cut: tf.Tensor  # [batch, beam], whether the limit ended it

    @property
    def lengths(self) -> tf.Tensor:
        """The number of words of each hypothesis, without the end, `[batch, beam]`."""
        return tf.reduce_sum(tf.cast(self.words != END, tf.int32), -1)


class _Beams(NamedTuple):
    """The loop variables. All open hypotheses have `time` words."""

    time: tf.Tensor
    last: tf.Tensor  # [active * beam], the last word of each; before the first [active]
    state: State  # [active * beam, ...], before the first word [active, ...]
    memory: Memory  # [active, ...]
    words: tf.Tensor  # [active, beam, the largest limit], padded with the end
    costs: tf.Tensor  # [active, beam]
    finished: Hypotheses  # [active, ...], the best so far
    goes_on: tf.Tensor  # [active], whether an open hypothesis can still displace a finished one


class _Batch(NamedTuple):
    """The sentences that are still searched, and the results of all."""

    sentences: tf.Tensor  # [active], their numbers
    limits: tf.Tensor  # [active]
    beams: _Beams
    results: Hypotheses  # [batch, ...]


def beam_search(
    decode_step: DecodeStep,
    state: State,
    memory: Memory,
    *,
    beam_size: int,
    alpha: float,
    limits: tf.Tensor,
    start: int,
) -> Hypotheses:
    """Finds the word sequences with the lowest scores.

    Args:
        decode_step: What `make_step` of a model returns. Row `i * beam_size + j` is hypothesis j of
            sentence i. The first step has one row for each sentence.
        state: The state before the first word, `[batch, ...]`.
        memory: What `decode_step` knows of each sentence, `[batch, ...]`.
        beam_size: Number of open hypotheses, and of finished ones, that are kept.
        alpha: Costs are divided by the length to the power alpha; 0 ranks by cost alone.
        limits: Words after which a hypothesis must end, `[batch]`.
        start: Id that `decode_step` gets as the word before the first.
    """
    batch = tf.size(limits)
    longest = tf.maximum(tf.reduce_max(limits), 0)
    shape = [batch, beam_size]
    missing = tf.fill(shape, float("inf"))
    none = Hypotheses(
        tf.fill([*shape, longest], END), missing, missing, tf.fill(shape, value=False)
    )
    # Before the first word all hypotheses are equal, so extend only one.
    costs = tf.tile([[0.0] + [float("inf")] * (beam_size - 1)], [batch, 1])
    beams = _Beams(
        time=tf.constant(0),
        last=tf.fill([batch], start),
        state=state,
        memory=memory,
        words=none.words,
        costs=costs,
        finished=none,
        goes_on=tf.fill([batch], value=True),
    )

    def goes_on(beams: _Beams) -> tf.Tensor:
        best_open = tf.reduce_min(score(beams.costs, beams.time, alpha), 1)
        worst_finished = tf.reduce_max(beams.finished.scores, 1)
        if beam_size == 1:
            worst_finished = tf.where(tf.math.is_inf(worst_finished), worst_finished, 0.0)
        return best_open < worst_finished

    def for_each_hypothesis(found):
        rows = tf.range(beam_size * batch) // beam_size
        return tf.nest.map_structure(lambda x: tf.gather(x, rows), found)

    def advance(beams: _Beams, limits: tf.Tensor) -> _Beams:
        next_words, state, memory = decode_step(beams.last, beams.state, beams.memory)
        found = (next_words, state)
        next_words, state = tf.cond(
            beams.time == 0, lambda: for_each_hypothesis(found), lambda: found
        )
        costs, parents, extending, cut = _cheapest(beams.costs, *next_words, limits <= beams.time)
        finished = _finish(beams, costs, parents, extending == END, cut, alpha)
        beams = _extend(beams._replace(memory=memory), costs, parents, extending, state, finished)
        beams = beams._replace(goes_on=goes_on(beams))
        # A decided sentence stays decided while others of the batch go on.
        return beams._replace(
            costs=tf.where(beams.goes_on[:, tf.newaxis], beams.costs, float("inf"))
        )

    def few_have_stopped(beams: _Beams) -> tf.Tensor:
        return tf.reduce_mean(tf.cast(beams.goes_on, tf.float32)) > 1 - _LEAST_SHARE

    def until_many_stop(now: _Batch) -> _Batch:
        beams = _while(few_have_stopped, lambda beams: advance(beams, now.limits), now.beams)
        return _leave(now._replace(beams=beams))

    begin = _Batch(tf.range(batch), limits, beams, none)
    return _while(lambda now: tf.reduce_any(now.beams.goes_on), until_many_stop, begin).results


def _while(condition: Callable, body: Callable, begin: NamedTuple) -> NamedTuple:
    """Returns the loop variables after the last turn. Their numbers of rows may change."""
    shapes = tf.nest.map_structure(
        lambda x: tf.TensorShape([None, *x.shape[1:]] if x.shape.rank else []), begin
    )
    # In tuples, because while_loop would pass the fields as separate arguments.
    (found,) = tf.while_loop(
        condition, lambda now: (body(now),), (begin,), shape_invariants=(shapes,)
    )
    return found


def _leave(now: _Batch) -> _Batch:
    """Returns the batch without the sentences whose search has stopped."""
    beams = now.beams
    numbers = now.sentences[:, tf.newaxis]
    results = tf.nest.map_structure(
        lambda x, found: tf.tensor_scatter_nd_update(x, numbers, found), now.results, beams.finished
    )
    kept = tf.where(beams.goes_on)[:, 0]
    beam_size = beams.costs.shape[1]
    rows = tf.reshape(kept[:, tf.newaxis] * beam_size + tf.range(beam_size, dtype=kept.dtype), [-1])
    last, state = tf.nest.map_structure(lambda x: tf.gather(x, rows), (beams.last, beams.state))
    of_sentences = (now.sentences, now.limits, beams._replace(time=(), last=(), state=()))
    sentences, limits, others = tf.nest.map_structure(lambda x: tf.gather(x, kept), of_sentences)
    return _Batch(
        sentences, limits, others._replace(time=beams.time, last=last, state=state), results
    )


def score(costs: tf.Tensor, lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    """Returns the scores of hypotheses of these lengths, without the end."""
    return costs / tf.cast(lengths + 1, tf.float32) ** alpha


def _cheapest(costs, logits, normalizers, must_end: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns the cheapest extensions of each sentence, best first: costs, parents and words,
    `[active, 2 * beam]`.

    Each hypothesis has one extension by the end, so at least `beam` of them go on. Where `must_end`
    `[active]`, there are no others. The last result is whether that cut the parent, because it has
    a likelier word.
    """
    beam_size = costs.shape[1]
    size = logits.shape[-1]
    costs += tf.reshape(normalizers, [-1, beam_size])
    logits = tf.reshape(logits, [-1, beam_size, size])

    def with_limit() -> tuple[tf.Tensor, tf.Tensor]:
        cut = must_end[:, tf.newaxis] & (logits[:, :, END] < tf.reduce_max(logits, -1))
        others = must_end[:, tf.newaxis, tf.newaxis] & (tf.range(size) != END)
        return tf.where(others, float("-inf"), logits), cut

    limited = tf.reduce_any(must_end)
    logits, cut = tf.cond(limited, with_limit, lambda: (logits, tf.zeros_like(costs, tf.bool)))
    negated, parents, words = top_words(logits, costs, 2 * beam_size)
    return -negated, parents, words, tf.gather(cut, parents, batch_dims=1)


def _finish(beams: _Beams, costs, parents, is_end, cut, alpha: float) -> Hypotheses:
    """Returns the best of the old finished hypotheses and of those that the extensions end."""
    old = beams.finished
    beam_size = beams.costs.shape[1]
    costs = tf.where(is_end, costs, float("inf"))[:, :beam_size]
    words = tf.gather(beams.words, parents[:, :beam_size], batch_dims=1)
    new = Hypotheses(words, costs, score(costs, beams.time, alpha), cut[:, :beam_size])
    both = Hypotheses(*(tf.concat(pair, 1) for pair in zip(old, new, strict=True)))
    _, kept = tf.math.top_k(-both.scores, beam_size)
    return Hypotheses(*(tf.gather(x, kept, batch_dims=1) for x in both))


def _extend(beams: _Beams, costs, parents, extending, state: State, finished: Hypotheses) -> _Beams:
    """Returns the beams with the cheapest of the extensions that are not ends."""
    beam_size = beams.costs.shape[1]
    negated, kept = tf.math.top_k(-tf.where(extending == END, float("inf"), costs), beam_size)
    parents, extending = (tf.gather(x, kept, batch_dims=1) for x in (parents, extending))
    if beam_size > 1:
        first_rows = tf.range(tf.shape(parents)[0])[:, tf.newaxis] * beam_size
        rows = tf.reshape(first_rows + parents, [-1])  # [active * beam]
        state = tf.nest.map_structure(lambda x: tf.gather(x, rows), state)
    words = tf.gather(beams.words, parents, batch_dims=1)
    here = tf.range(tf.shape(words)[2]) == beams.time
    words = tf.where(here, extending[..., tf.newaxis], words)
    return beams._replace(
        time=beams.time + 1,
        last=tf.reshape(extending, [-1]),
        state=state,
        words=words,
        costs=-negated,
        finished=finished,
    )


def top_words(
    logits: tf.Tensor, costs: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the `count` largest of `logits - costs` of each sentence, largest first, their rows
    and their words.

    The result is that of `tf.math.top_k` on all of them, also in ties, where the first wins. It is
    faster, because the largest are in the blocks of words that have the largest maxima, and only
    those are looked at.

    Args:
        logits: `[batch, rows, words]`; the numbers of rows and words are known.
        costs: `[batch, rows]`.
        count: At most the number of words of all rows.
    """
    _, rows, words = logits.shape
    size = next((size for size in _SIZES if words % size == 0), _SIZES[0])
    blocks = -(-words // size)
    if rows * blocks < count:
        blocks = words
        size = 1
    elif words % size:
        logits = tf.pad(
            logits, [[0, 0], [0, 0], [0, blocks * size - words]], constant_values=float("-inf")
        )
    in_blocks = tf.reshape(logits, [-1, rows * blocks, size])
    maxima = tf.reshape(tf.reduce_max(in_blocks, -1), [-1, rows, blocks]) - costs[..., tf.newaxis]
    _, best = tf.math.top_k(tf.reshape(maxima, [-1, rows * blocks]), count, sorted=False)
    # [batch, count], ascending: the first of equal entries stays the first.
    best = -tf.math.top_k(-best, count)[0]
    candidates = (
        tf.gather(in_blocks, best, batch_dims=1)
        - tf.gather(costs, best // blocks, batch_dims=1)[..., tf.newaxis]
    )
    top, places = tf.math.top_k(tf.reshape(candidates, [-1, count * size]), count)
    chosen = tf.gather(best, places // size, batch_dims=1)
    found = chosen % blocks * size + places % size
    if words % size:
        found = tf.minimum(found, words - 1)  # not the padding
    return top, chosen // blocks, found
