"""Beam search over any model that gives next-word log-probabilities.

A hypothesis's cost is the sum of -log p over its words and its end. The search keeps, per sentence, the `beam_size`
cheapest open hypotheses and the `beam_size` cheapest finished ones, and stops when no open one can still displace a
finished one; costs only grow, so nothing found later could be cheaper. The loop and all its tensors live in the graph.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

State = Any  # a structure of tensors [rows, ...]
DecodeStep = Callable[[tf.Tensor, State], tuple[tf.Tensor, State]]


class Hypotheses(NamedTuple):
    """The finished hypotheses of each sentence, best first. Missing ones have infinite cost and length 0."""

    words: tf.Tensor  # [batch, beam, time] ids, padded with `end`
    lengths: tf.Tensor  # [batch, beam], without the end
    costs: tf.Tensor  # [batch, beam], not divided by any length


class _Beams(NamedTuple):
    """Loop variables; `words` are padded with `end` to `[batch, beam, max_length]`."""

    time: tf.Tensor
    state: State
    open_words: tf.Tensor
    open_costs: tf.Tensor
    finished: Hypotheses


def beam_search(
    decode_step: DecodeStep,
    state: State,
    *,
    batch: tf.Tensor,
    beam_size: int,
    max_length: tf.Tensor | int,
    start: int,
    end: int,
) -> Hypotheses:
    """Finds the cheapest word sequences.

    Args:
        decode_step: Maps the last words `[rows]` and a state `[rows, ...]` to log-probabilities `[rows, words]` of
            the next word and the next state; row `i * beam_size + j` is hypothesis j of sentence i.
        state: The state before the first word, `[batch * beam_size, ...]`.
        batch: Number of sentences.
        beam_size: Number of hypotheses kept, of either sort.
        max_length: Words after which a hypothesis must end.
        start: Id given to `decode_step` as the word before the first.
        end: Id of the end of sentence.

    Returns:
        The finished hypotheses in the order of their costs.
    """
    none = Hypotheses(
        tf.fill([batch, beam_size, max_length], end),
        tf.zeros([batch, beam_size], tf.int32),
        tf.fill([batch, beam_size], float("inf")),
    )
    # All hypotheses are the same before the first word, so only one of them is expanded.
    first_costs = tf.tile([[0.0] + [float("inf")] * (beam_size - 1)], [batch, 1])
    beams = _Beams(tf.constant(0), state, none.words, first_costs, none)

    def undecided(beams: _Beams) -> tf.Tensor:
        best_open = tf.reduce_min(beams.open_costs, 1)
        worst_finished = tf.reduce_max(beams.finished.costs, 1)
        return (beams.time <= max_length) & tf.reduce_any(best_open < worst_finished)

    def advance(beams: _Beams) -> tuple[_Beams]:
        last = tf.where(beams.time > 0, beams.open_words[:, :, tf.maximum(beams.time - 1, 0)], start)
        log_probabilities, state = decode_step(tf.reshape(last, [-1]), beams.state)
        words = log_probabilities.shape[-1]
        # [batch, beam, words]
        costs = beams.open_costs[..., tf.newaxis] - tf.reshape(log_probabilities, [batch, beam_size, words])
        finished = _finish(beams, costs[..., end], beam_size)
        costs = tf.where(tf.range(words) == end, float("inf"), costs)
        costs = tf.where(beams.time < max_length, costs, float("inf"))
        return (_extend(beams, costs, state, finished, beam_size),)

    # One loop variable, a structure; rows and lengths are unknown when the graph is made.
    (beams,) = tf.while_loop(lambda beams: undecided(beams), advance, (beams,), maximum_iterations=max_length + 1)
    return beams.finished


def rank(hypotheses: Hypotheses, alpha: tf.Tensor | float) -> Hypotheses:
    """Divides costs by length (the end counted) to the power alpha, and sorts by the result, best first."""
    lengths = tf.cast(hypotheses.lengths + 1, tf.float32)
    scored = hypotheses._replace(costs=hypotheses.costs / lengths**alpha)
    order = tf.argsort(scored.costs, axis=1, stable=True)
    return Hypotheses(*(tf.gather(x, order, batch_dims=1) for x in scored))


def _finish(beams: _Beams, costs: tf.Tensor, beam_size: int) -> Hypotheses:
    """Returns the cheapest of what was finished and the open hypotheses ended now, at `costs` `[batch, beam]`."""
    old = beams.finished
    all_costs = tf.concat([old.costs, costs], 1)
    negated, kept = tf.math.top_k(-all_costs, beam_size)
    lengths = tf.concat([old.lengths, tf.fill(tf.shape(costs), beams.time)], 1)
    words = tf.concat([old.words, beams.open_words], 1)
    lengths = tf.where(tf.math.is_inf(negated), 0, tf.gather(lengths, kept, batch_dims=1))
    return Hypotheses(tf.gather(words, kept, batch_dims=1), lengths, -negated)


def _extend(beams: _Beams, costs: tf.Tensor, state: State, finished: Hypotheses, beam_size: int) -> _Beams:
    """Returns the beams after the cheapest extensions at `costs` `[batch, beam, words]`."""
    batch, _, words = tf.unstack(tf.shape(costs))
    negated, kept = tf.math.top_k(-tf.reshape(costs, [batch, beam_size * words]), beam_size)
    parents, new_words = kept // words, kept % words  # [batch, beam] each
    rows = tf.reshape(tf.range(batch)[:, tf.newaxis] * beam_size + parents, [-1])
    state = tf.nest.map_structure(lambda x: tf.gather(x, rows), state)
    history = tf.gather(beams.open_words, parents, batch_dims=1)
    here = tf.range(tf.shape(history)[2]) == beams.time
    history = tf.where(here, new_words[..., tf.newaxis], history)
    return _Beams(beams.time + 1, state, history, -negated, finished)
