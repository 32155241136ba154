"""Samples translations word by word from the probabilities of a model."""

from typing import NamedTuple

import tensorflow as tf

from ..model.contract import DecodeStep, Memory, State
from ..text.vocabulary import END
from .options import DecodingOptions
from .search import Hypotheses, score


class _Samples(NamedTuple):
    """Loop variables. A translation is open until its end is drawn."""

    time: tf.Tensor
    state: State
    memory: Memory
    words: tf.Tensor  # [rows, the largest limit], padded with the end
    costs: tf.Tensor  # [rows]
    cut: tf.Tensor  # [rows]
    open: tf.Tensor  # [rows]


def sample(
    decode_step: DecodeStep,
    state: State,
    memory: Memory,
    options: DecodingOptions,
    numbers: tf.Tensor,
    *,
    limits: tf.Tensor,
    start: int,
) -> Hypotheses:
    """Draws translations, in no order. Their costs are those of the model's own probabilities, as
    in `beam_search`.

    The seed and the number of a sentence decide its samples. Other batches change one only where
    they round a probability so that another word is drawn.

    The arguments are those of `beam_search`, and these:

    Args:
        decode_step: What `make_step` of a model returns. Row `i * samples + j` is sample j of
            sentence i.
        options: How words are drawn and translations ranked.
        numbers: Number of each sentence in its text, `[batch]`, 64-bit integers.
    """
    batch = tf.size(numbers)
    samples = options.hypotheses
    rows = batch * samples
    longest = tf.maximum(tf.reduce_max(limits), 0)
    limits = tf.repeat(limits, samples)
    uniforms = tf.map_fn(  # [batch, time, samples]; a longer time only adds numbers
        lambda number: tf.random.stateless_uniform(
            [longest + 1, samples], tf.stack([options.seed, number]), alg="philox"
        ),
        numbers,
        fn_output_signature=tf.float32,
    )
    uniforms = tf.reshape(tf.transpose(uniforms, [1, 0, 2]), [longest + 1, rows])
    state = tf.nest.map_structure(lambda x: tf.repeat(x, samples, axis=0), state)

    def advance(now: _Samples) -> tuple[_Samples]:
        last = tf.where(now.time > 0, now.words[:, tf.maximum(now.time - 1, 0)], start)
        (logits, normalizers), state, memory = decode_step(last, now.state, now.memory)
        log_probabilities = logits - normalizers[:, tf.newaxis]
        drawn = draw_words(log_probabilities, options, uniforms[now.time])
        cut = now.open & (now.time == limits) & (drawn != END)
        drawn = tf.where(now.open & (now.time < limits), drawn, END)
        costs = now.costs - tf.where(
            now.open, tf.gather(log_probabilities, drawn, batch_dims=1), 0.0
        )
        goes_on = now.open & (drawn != END)
        words = tf.where(tf.range(longest) == now.time, drawn[:, tf.newaxis], now.words)
        return (_Samples(now.time + 1, state, memory, words, costs, now.cut | cut, goes_on),)

    no = tf.fill([rows], value=False)
    none = tf.fill([rows, longest], END)
    begin = _Samples(tf.constant(0), state, memory, none, tf.zeros([rows]), no, ~no)
    (done,) = tf.while_loop(
        lambda now: tf.reduce_any(now.open), advance, (begin,), maximum_iterations=longest + 1
    )
    # An infinite cost: no word was allowed.
    words = tf.where(tf.math.is_inf(done.costs)[:, tf.newaxis], END, done.words)
    words = tf.reshape(words, [batch, samples, longest])
    costs = tf.reshape(done.costs, [batch, samples])
    found = Hypotheses(words, costs, costs, tf.reshape(done.cut, [batch, samples]))
    return found._replace(scores=score(costs, found.lengths, options.normalization_alpha))


def draw_words(
    log_probabilities: tf.Tensor, options: DecodingOptions, uniforms: tf.Tensor
) -> tf.Tensor:
    """Returns a word for each row of `[rows, words]`, `[rows]`: the first whose cumulated
    probability is above its number of `uniforms` `[rows]`.
    """
    words = None
    if options.sampling_top_k:
        count = min(options.sampling_top_k, log_probabilities.shape[-1])
        log_probabilities, words = tf.math.top_k(log_probabilities, count)
    cumulated = tf.cumsum(tf.nn.softmax(log_probabilities / options.sampling_temperature), axis=-1)
    total = cumulated[:, -1:]
    above = tf.searchsorted(cumulated, uniforms[:, tf.newaxis] * total, side="right")
    # The last possible word, which rounding may go past.
    last = tf.searchsorted(cumulated, total, side="left")
    drawn = tf.minimum(above, last)[:, 0]
    return drawn if words is None else tf.gather(words, drawn, batch_dims=1)
