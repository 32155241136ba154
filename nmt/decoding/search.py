"""Beam search over any model that gives next-word log-probabilities.

A hypothesis's cost is the sum of -log p over its words and its end; its score is the cost over the length, the end
counted, to the power alpha. At each step the open hypotheses are extended by every word. An extension by the end that
is among the `beam_size` cheapest is finished; the cheapest others stay open. A sentence's search stops when it has
`beam_size` finished hypotheses and no open one, were it to end now for nothing, would score better than the worst of
them; a beam of one is greedy and stops at its first end. The loop and all its tensors live in the graph.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

State = Any  # a structure of tensors [rows, ...]
DecodeStep = Callable[[tf.Tensor, State], tuple[tf.Tensor, State]]


class Hypotheses(NamedTuple):
    """The finished hypotheses of each sentence, best score first. Missing ones have infinite cost and length 0."""

    words: tf.Tensor  # [batch, beam, time] ids, padded with the end
    lengths: tf.Tensor  # [batch, beam], without the end
    costs: tf.Tensor  # [batch, beam]
    scores: tf.Tensor  # [batch, beam]


class _Beams(NamedTuple):
    """Loop variables. All open hypotheses have `time` words."""

    time: tf.Tensor
    state: State
    words: tf.Tensor  # [batch, beam, max_length], padded with the end
    costs: tf.Tensor  # [batch, beam]
    finished: Hypotheses


def beam_search(
    decode_step: DecodeStep,
    state: State,
    *,
    batch: tf.Tensor,
    beam_size: int,
    alpha: float,
    max_length: int,
    start: int,
    end: int,
) -> Hypotheses:
    """Finds word sequences of a low score.

    Args:
        decode_step: Maps the last words `[rows]` and a state `[rows, ...]` to log-probabilities `[rows, words]` of
            the next word and the next state; row `i * beam_size + j` is hypothesis j of sentence i.
        state: The state before the first word, `[batch * beam_size, ...]`.
        batch: Number of sentences.
        beam_size: Number of hypotheses kept, open and finished ones each.
        alpha: Power of the length that costs are divided by; 0 ranks by cost alone.
        max_length: Words after which a hypothesis must end.
        start: Id given to `decode_step` as the word before the first.
        end: Id of the end of sentence.
    """
    shape = [batch, beam_size]
    missing = tf.fill(shape, float("inf"))
    none = Hypotheses(tf.fill([*shape, max_length], end), tf.zeros(shape, tf.int32), missing, missing)
    # Before the first word all hypotheses are the same, so only one of them is extended.
    costs = tf.tile([[0.0] + [float("inf")] * (beam_size - 1)], [batch, 1])
    beams = _Beams(tf.constant(0), state, none.words, costs, none)

    def undecided(beams: _Beams) -> tf.Tensor:
        """Tells of each sentence, `[batch]`, whether an open hypothesis could still displace a finished one."""
        best_open = tf.reduce_min(_score(beams.costs, beams.time, alpha), 1)
        worst_finished = tf.reduce_max(beams.finished.scores, 1)
        if beam_size == 1:
            worst_finished = tf.where(tf.math.is_inf(worst_finished), worst_finished, 0.0)
        return best_open < worst_finished

    def advance(beams: _Beams) -> tuple[_Beams]:
        last = tf.where(beams.time > 0, beams.words[:, :, tf.maximum(beams.time - 1, 0)], start)
        log_probabilities, state = decode_step(tf.reshape(last, [-1]), beams.state)
        words = log_probabilities.shape[-1]
        costs = beams.costs[..., tf.newaxis] - tf.reshape(log_probabilities, [*shape, words])
        must_end = (beams.time == max_length) & (tf.range(words) != end)
        costs = tf.where(must_end, float("inf"), costs)  # [batch, beam, words]
        # At most half of the cheapest 2 * beam_size extensions are ends, so the rest fills the beam.
        negated, flat = tf.math.top_k(-tf.reshape(costs, [batch, beam_size * words]), 2 * beam_size)
        parents, extending = flat // words, flat % words  # [batch, 2 * beam]
        finished = _finish(beams, -negated, parents, extending == end, alpha)
        beams = _extend(beams, -negated, parents, extending, end, state, finished)
        # A sentence that is decided stays so, however long the others of the batch take.
        return (beams._replace(costs=tf.where(undecided(beams)[:, tf.newaxis], beams.costs, float("inf"))),)

    # Tensors of unknown shape change theirs in the loop; one variable that is a structure takes them all.
    (beams,) = tf.while_loop(
        lambda beams: tf.reduce_any(undecided(beams)), advance, (beams,), maximum_iterations=max_length + 1
    )
    return beams.finished


def _score(costs: tf.Tensor, lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    return costs / tf.cast(lengths + 1, tf.float32) ** alpha


def _finish(beams: _Beams, costs, parents, is_end, alpha: float) -> Hypotheses:
    """Returns the best of what was finished and the ends among the cheapest extensions `[batch, 2 * beam]`."""
    old, beam_size = beams.finished, beams.costs.shape[1]
    costs = tf.where(is_end, costs, float("inf"))[:, :beam_size]
    words = tf.gather(beams.words, parents[:, :beam_size], batch_dims=1)
    new = Hypotheses(words, tf.fill(tf.shape(costs), beams.time), costs, _score(costs, beams.time, alpha))
    both = [tf.concat(pair, 1) for pair in zip(old, new, strict=True)]
    _, kept = tf.math.top_k(-both[-1], beam_size)
    best = Hypotheses(*(tf.gather(x, kept, batch_dims=1) for x in both))
    return best._replace(lengths=tf.where(tf.math.is_inf(best.costs), 0, best.lengths))


def _extend(beams: _Beams, costs, parents, extending, end: int, state: State, finished: Hypotheses) -> _Beams:
    """Returns the beams after the cheapest extensions `[batch, 2 * beam]` other than ends."""
    beam_size = beams.costs.shape[1]
    negated, kept = tf.math.top_k(-tf.where(extending == end, float("inf"), costs), beam_size)
    parents, extending = (tf.gather(x, kept, batch_dims=1) for x in (parents, extending))  # [batch, beam]
    first_rows = tf.range(tf.shape(parents)[0])[:, tf.newaxis] * beam_size
    rows = tf.reshape(first_rows + parents, [-1])  # [batch * beam]
    state = tf.nest.map_structure(lambda x: tf.gather(x, rows), state)
    words = tf.gather(beams.words, parents, batch_dims=1)
    here = tf.range(tf.shape(words)[2]) == beams.time
    words = tf.where(here, extending[..., tf.newaxis], words)
    return _Beams(beams.time + 1, state, words, -negated, finished)
