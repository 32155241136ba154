"""Beam search over any model that gives the log-probabilities of the next word.

The cost of a hypothesis is the sum of -log p over its words and its end. Its score is the cost divided by its length,
the end included, to the power alpha. Lower scores are better.

Each step extends the open hypotheses by every word. An extension by the end is finished if it is among the `beam_size`
cheapest extensions. Of the other extensions, the `beam_size` cheapest stay open. The search of a sentence stops when it
has `beam_size` finished hypotheses and no open one would score better than the worst of them by ending now at no cost.
A beam of one is greedy: it stops at its first end. A hypothesis that reaches the limit of its sentence must end. It is
cut if the model preferred another word there.

The loop and its tensors stay in the graph. Sentences whose search has stopped leave the batch, many at a time.
"""

from typing import NamedTuple

import tensorflow as tf

from ..model.contract import DecodeStep, Memory, State
from .top_words import top_words

_LEAST_SHARE = 1 / 8  # Sentences leave only when this share of the batch has stopped, because leaving copies the rest.


class Hypotheses(NamedTuple):
    """The finished hypotheses of each sentence, best score first. Unused places have infinite cost."""

    words: tf.Tensor  # [batch, beam, time] ids, padded with the end
    lengths: tf.Tensor  # [batch, beam], without the end; 0 where the cost is infinite
    costs: tf.Tensor  # [batch, beam]
    scores: tf.Tensor  # [batch, beam]
    cut: tf.Tensor  # [batch, beam], whether the limit ended it


class _Beams(NamedTuple):
    """Loop variables. All open hypotheses have `time` words."""

    time: tf.Tensor
    sentences: tf.Tensor  # [active], the numbers of the sentences that are still in the batch
    limits: tf.Tensor  # [active]
    state: State  # [active * beam, ...], before the first word [active, ...]
    memory: Memory  # [active, ...]
    words: tf.Tensor  # [active, beam, the largest limit], padded with the end
    costs: tf.Tensor  # [active, beam]
    finished: Hypotheses  # [active, ...]
    left: Hypotheses  # [batch, ...], those of the sentences that have left


def beam_search(
    decode_step: DecodeStep,
    state: State,
    memory: Memory,
    *,
    beam_size: int,
    alpha: float,
    limits: tf.Tensor,
    start: int,
    end: int,
) -> Hypotheses:
    """Finds the word sequences with the lowest scores.

    Args:
        decode_step: What `make_step` of a model returns. Row `i * beam_size + j` is hypothesis j of sentence i. The
            first step has one row for each sentence.
        state: The state before the first word, `[batch, ...]`.
        memory: What `decode_step` knows of each sentence, `[batch, ...]`.
        beam_size: Number of open hypotheses, and of finished ones, that are kept.
        alpha: Costs are divided by the length to the power alpha; 0 ranks by cost alone.
        limits: Words after which a hypothesis must end, `[batch]`.
        start: Id that `decode_step` gets as the word before the first.
        end: Id of the end of sentence.
    """
    batch = tf.size(limits)
    shape = [batch, beam_size]
    missing, longest = tf.fill(shape, float("inf")), tf.maximum(tf.reduce_max(limits), 0)
    none = Hypotheses(
        tf.fill([*shape, longest], end), tf.zeros(shape, tf.int32), missing, missing, tf.fill(shape, value=False)
    )
    # Before the first word all hypotheses are equal, so extend only one.
    costs = tf.tile([[0.0] + [float("inf")] * (beam_size - 1)], [batch, 1])
    beams = _Beams(tf.constant(0), tf.range(batch), limits, state, memory, none.words, costs, none, none)

    def undecided(beams: _Beams) -> tf.Tensor:
        """Returns whether an open hypothesis of each sentence can still displace a finished one, `[active]`."""
        best_open = tf.reduce_min(_score(beams.costs, beams.time, alpha), 1)
        worst_finished = tf.reduce_max(beams.finished.scores, 1)
        if beam_size == 1:
            worst_finished = tf.where(tf.math.is_inf(worst_finished), worst_finished, 0.0)
        return best_open < worst_finished

    def for_each_hypothesis(rows):
        return tf.nest.map_structure(lambda x: tf.repeat(x, beam_size, axis=0), rows)

    def advance(beams: _Beams) -> tuple[_Beams]:
        is_first = beams.time == 0
        last = tf.cond(
            is_first, lambda: tf.fill([batch], start), lambda: tf.reshape(beams.words[:, :, beams.time - 1], [-1])
        )
        next_words, state, memory = decode_step(last, beams.state, beams.memory)
        found = (next_words, state)
        next_words, state = tf.cond(is_first, lambda: for_each_hypothesis(found), lambda: found)
        must_end = beams.limits == beams.time
        costs, parents, extending, cut = _cheapest(beams.costs, *next_words, end, must_end)
        finished = _finish(beams, costs, parents, extending == end, cut, alpha)
        beams = _extend(beams._replace(memory=memory), costs, parents, extending, end, state, finished)
        goes_on = undecided(beams)
        # A decided sentence stays decided while others of the batch go on.
        beams = beams._replace(costs=tf.where(goes_on[:, tf.newaxis], beams.costs, float("inf")))
        many_leave = tf.reduce_mean(tf.cast(goes_on, tf.float32)) <= 1 - _LEAST_SHARE
        return (tf.cond(many_leave, lambda: _leave(beams, goes_on), lambda: beams),)

    any_rows = tf.nest.map_structure(lambda x: tf.TensorShape([None, *x.shape[1:]]), beams)
    # In a tuple, because while_loop would pass the fields of `beams` as separate arguments.
    (beams,) = tf.while_loop(
        lambda beams: tf.reduce_any(undecided(beams)),
        advance,
        (beams,),
        shape_invariants=(any_rows._replace(time=beams.time.shape),),
        maximum_iterations=longest + 1,
    )
    return _results(beams)


def _leave(beams: _Beams, goes_on: tf.Tensor) -> _Beams:
    """Returns the beams of the sentences that go on, `[active]`; the results of the others are in `left`."""
    kept, beam_size = tf.where(goes_on)[:, 0], beams.costs.shape[1]
    rows = tf.reshape(kept[:, tf.newaxis] * beam_size + tf.range(beam_size, dtype=kept.dtype), [-1])
    of_sentences = (beams.sentences, beams.limits, beams.memory, beams.words, beams.costs, beams.finished)
    sentences, limits, memory, words, costs, finished = tf.nest.map_structure(
        lambda x: tf.gather(x, kept), of_sentences
    )
    state = tf.nest.map_structure(lambda x: tf.gather(x, rows), beams.state)
    return _Beams(beams.time, sentences, limits, state, memory, words, costs, finished, _results(beams))


def _results(beams: _Beams) -> Hypotheses:
    """Returns the finished hypotheses of all sentences, `[batch, ...]`."""
    numbers = beams.sentences[:, tf.newaxis]
    return tf.nest.map_structure(
        lambda left, x: tf.tensor_scatter_nd_update(left, numbers, x), beams.left, beams.finished
    )


def _score(costs: tf.Tensor, lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    return costs / tf.cast(lengths + 1, tf.float32) ** alpha


def _cheapest(costs, logits, normalizers, end: int, must_end: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns the cheapest extensions of each sentence, best first: costs, parents and words, `[active, 2 * beam]`.

    Each hypothesis has one extension by the end, so at least `beam` of them go on. Where `must_end` `[active]`, there
    are no others. The last result is whether that cut the parent, because it has a likelier word.
    """
    batch, beam_size = tf.shape(costs)[0], costs.shape[1]
    costs += tf.reshape(normalizers, [batch, beam_size])
    logits = tf.reshape(logits, [batch, beam_size, logits.shape[-1]])
    negated, parents, words = top_words(logits, costs, 2 * beam_size)

    def with_limit() -> tuple[tf.Tensor, ...]:
        ends = logits[:, :, end]
        ended, ending = tf.math.top_k(ends - costs, beam_size)
        ended = tf.pad(ended, [[0, 0], [0, beam_size]], constant_values=float("-inf"))
        rows = must_end[:, tf.newaxis]
        cut = tf.gather(rows & (ends < tf.reduce_max(logits, -1)), chosen := tf.tile(ending, [1, 2]), batch_dims=1)
        return -tf.where(rows, ended, negated), tf.where(rows, chosen, parents), tf.where(rows, end, words), cut

    def unlimited() -> tuple[tf.Tensor, ...]:
        return -negated, parents, words, tf.zeros_like(words, tf.bool)

    return tf.cond(tf.reduce_any(must_end), with_limit, unlimited)


def _finish(beams: _Beams, costs, parents, is_end, cut, alpha: float) -> Hypotheses:
    """Returns the best of the old finished hypotheses and the new ones among the extensions `[active, 2 * beam]`."""
    old, beam_size = beams.finished, beams.costs.shape[1]
    costs = tf.where(is_end, costs, float("inf"))[:, :beam_size]
    words = tf.gather(beams.words, parents[:, :beam_size], batch_dims=1)
    scores = _score(costs, beams.time, alpha)
    new = Hypotheses(words, tf.fill(tf.shape(costs), beams.time), costs, scores, cut[:, :beam_size])
    both = Hypotheses(*(tf.concat(pair, 1) for pair in zip(old, new, strict=True)))
    _, kept = tf.math.top_k(-both.scores, beam_size)
    best = Hypotheses(*(tf.gather(x, kept, batch_dims=1) for x in both))
    return best._replace(lengths=tf.where(tf.math.is_inf(best.costs), 0, best.lengths))


def _extend(beams: _Beams, costs, parents, extending, end: int, state: State, finished: Hypotheses) -> _Beams:
    """Returns the beams with the cheapest of the extensions `[active, 2 * beam]` that are not ends."""
    beam_size = beams.costs.shape[1]
    negated, kept = tf.math.top_k(-tf.where(extending == end, float("inf"), costs), beam_size)
    parents, extending = (tf.gather(x, kept, batch_dims=1) for x in (parents, extending))  # [active, beam]
    if beam_size > 1:
        first_rows = tf.range(tf.shape(parents)[0])[:, tf.newaxis] * beam_size
        rows = tf.reshape(first_rows + parents, [-1])  # [active * beam]
        state = tf.nest.map_structure(lambda x: tf.gather(x, rows), state)
    words = tf.gather(beams.words, parents, batch_dims=1)
    here = tf.range(tf.shape(words)[2]) == beams.time
    words = tf.where(here, extending[..., tf.newaxis], words)
    return beams._replace(time=beams.time + 1, state=state, words=words, costs=-negated, finished=finished)
