"""Random translations, drawn word by word from the probabilities of a model."""

from typing import NamedTuple

import tensorflow as tf

from .search import DecodeStep, Hypotheses, Memory, State


class Sampling(NamedTuple):
    """How words are drawn."""

    temperature: float = 1.0  # log-probabilities are divided by it: below 1 likely words become likelier
    top_k: int = 0  # draw from this many likeliest words only; 0 draws from all
    seed: int = 1234


class _Samples(NamedTuple):
    """Loop variables. A translation is open until its end is drawn."""

    time: tf.Tensor
    state: State
    words: tf.Tensor  # [rows, max_length], padded with the end
    lengths: tf.Tensor  # [rows], without the end
    costs: tf.Tensor  # [rows]
    open: tf.Tensor  # [rows]


def sample(
    decode_step: DecodeStep,
    state: State,
    memory: Memory,
    sampling: Sampling,
    draw: tf.Tensor,
    *,
    batch: tf.Tensor,
    samples: int,
    alpha: float,
    max_length: int,
    start: int,
    end: int,
) -> Hypotheses:
    """Draws translations. Their costs are those of the model's own probabilities, as in `beam_search`.

    Args:
        decode_step: As in `beam_search`; row `i * samples + j` is sample j of sentence i.
        state: The state before the first word, `[batch * samples, ...]`.
        memory: What `decode_step` knows of each sentence, `[batch, ...]`.
        sampling: How words are drawn.
        draw: Integer scalar; another one gives other samples.
        batch: Number of sentences.
        samples: Translations of each sentence.
        alpha: Costs are divided by the length to the power alpha.
        max_length: Words after which a translation must end.
        start: Id that `decode_step` gets as the word before the first.
        end: Id of the end of sentence.
    """
    rows = batch * samples

    def advance(now: _Samples) -> tuple[_Samples]:
        last = tf.where(now.time > 0, now.words[:, tf.maximum(now.time - 1, 0)], start)
        log_probabilities, state = decode_step(last, now.state, memory)
        seed = tf.stack([sampling.seed + (tf.cast(now.time, tf.int64) * 2**32), tf.cast(draw, tf.int64)])
        drawn = _draw(log_probabilities, sampling, seed)
        drawn = tf.where(now.open & (now.time < max_length), drawn, end)
        costs = now.costs - tf.where(now.open, tf.gather(log_probabilities, drawn, batch_dims=1), 0.0)
        goes_on = now.open & (drawn != end)
        words = tf.where(tf.range(max_length) == now.time, drawn[:, tf.newaxis], now.words)
        lengths = now.lengths + tf.cast(goes_on, tf.int32)
        return (_Samples(now.time + 1, state, words, lengths, costs, goes_on),)

    none = tf.fill([rows, max_length], end)
    begin = _Samples(
        tf.constant(0), state, none, tf.zeros([rows], tf.int32), tf.zeros([rows]), tf.fill([rows], value=True)
    )
    (done,) = tf.while_loop(lambda now: tf.reduce_any(now.open), advance, (begin,), maximum_iterations=max_length + 1)
    scores = done.costs / tf.cast(done.lengths + 1, tf.float32) ** alpha
    words = tf.reshape(done.words, [batch, samples, max_length])
    found = Hypotheses(words, *(tf.reshape(x, [batch, samples]) for x in (done.lengths, done.costs, scores)))
    order = tf.argsort(found.scores, stable=True)
    return Hypotheses(*(tf.gather(x, order, batch_dims=1) for x in found))


def _draw(log_probabilities: tf.Tensor, sampling: Sampling, seed: tf.Tensor) -> tf.Tensor:
    """Returns a word for each row of `[rows, words]`, `[rows]`."""
    k = min(sampling.top_k or log_probabilities.shape[-1], log_probabilities.shape[-1])
    likeliest, words = tf.math.top_k(log_probabilities, k)
    places = tf.random.stateless_categorical(likeliest / sampling.temperature, 1, seed, dtype=tf.int32)
    return tf.gather(words, places[:, 0], batch_dims=1)
