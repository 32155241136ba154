"""Random translations: from which distribution they are drawn, their costs, and the command."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.options import DecodingOptions
from nmt.decoding.sampling import draw_words, sample
from tests.nmt.outcomes import refused

P = np.array([0.1, 0.2, 0.3, 0.4])  # of the end and of words 1 to 3
DRAWS = 20_000
MAX_LENGTH = 3


def sampling(**options):
    return DecodingOptions(
        beam_size=DRAWS // 1000,
        n_best=True,
        normalization_alpha=0.0,
        translation_strategy="sampling",
        **options,
    )


def draw(options, first=0):
    """Draws from a model that gives every word the same probabilities at every step."""

    def step(words, state, memory):
        rows = tf.shape(words)[0]
        logits = tf.tile(tf.constant(np.log(P), tf.float32)[tf.newaxis], [rows, 1])
        return (logits + 3.0, tf.fill([rows], 3.0)), state, memory

    lines = 2 * DRAWS // options.hypotheses
    numbers = tf.range(first, first + lines, dtype=tf.int64)
    limits = tf.fill([lines], MAX_LENGTH)
    state = tf.zeros([lines, 1])

    def run():
        return sample(step, state, (), options, numbers, limits=limits, start=-1)

    return tf.function(run, autograph=False)()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, P),
        ({"sampling_temperature": 0.5}, P**2 / (P**2).sum()),
        ({"sampling_top_k": 2}, np.array([0.0, 0.0, 0.3, 0.4]) / 0.7),
        (
            {"sampling_temperature": 0.5, "sampling_top_k": 2},
            np.array([0.0, 0.0, 0.09, 0.16]) / 0.25,
        ),
    ],
)
def test_words_have_the_frequencies_of_the_distribution(options, expected):
    """To three standard deviations or so, for each half of the lines."""
    words = np.split(draw(sampling(**options)).words.numpy()[:, :, 0], 2)
    for half in words:
        frequencies = np.bincount(half.ravel(), minlength=4) / DRAWS
        np.testing.assert_allclose(frequencies, expected, atol=3 * 0.5 / DRAWS**0.5)
    assert (words[0] != words[1]).any()


def test_costs_are_those_of_the_model():
    """Whatever the temperature. A translation of the longest length must end then."""
    found = draw(sampling(sampling_temperature=2.0))
    words = found.words.numpy()
    lengths = found.lengths.numpy()
    costs = found.costs.numpy()
    assert lengths.max() == 3
    assert lengths.min() == 0
    drawn = np.arange(3) <= lengths[..., np.newaxis]  # words and the end, if it is in the matrix
    expected = (-np.log(P)[words] * drawn).sum(-1) - np.where(lengths == 3, np.log(P[0]), 0.0)
    np.testing.assert_allclose(costs, expected, rtol=1e-5)
    assert not found.cut.numpy()[lengths < 3].any()
    at_limit = found.cut.numpy()[lengths == 3]
    root = P**0.5 / (P**0.5).sum()
    # Else the end was drawn there.
    np.testing.assert_allclose(at_limit.mean(), 1 - root[0], atol=0.02)


def test_the_seed_and_the_number_of_the_line_decide():
    first = draw(sampling())
    again = draw(sampling())
    other = draw(sampling(seed=5))
    later = draw(sampling(), 1)
    assert np.array_equal(first.words, again.words)
    assert not np.array_equal(first.words, other.words)
    assert not np.array_equal(first.words, later.words)
    assert np.array_equal(first.words[1:], later.words[:-1])


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(np.float32(1), np.float32(0))])
def test_no_random_number_draws_an_impossible_word(uniform):
    """The least could draw the first word, and the largest, by rounding, the last."""
    logits = np.random.default_rng(1).normal(size=[300, 40]).astype(np.float32)
    logits[:, :10] = logits[:, -10:] = -np.inf
    words = draw_words(tf.constant(logits), sampling(), tf.fill([300], uniform)).numpy()
    assert set(words) == {10 if uniform == 0 else 29}


@pytest.mark.slow
def test_the_command_draws_the_same_again(run, trained):
    def translate(*words):
        status, out, said = run("translate", "-m", "model", "-i", "dev.en", "-b", 30, *words)
        return status, out or said

    sampled = ("--translation_strategy", "sampling")
    status, first = translate(*sampled)
    assert (status, first.count("\n")) == (0, 64)
    assert translate(*sampled)[1] == translate(*sampled, "-b", 7)[1] == first
    assert translate(*sampled, "--seed", 5)[1] != first
    assert translate(*sampled, "--sampling_top_k", 1)[1] == translate("-k", 1)[1]
    assert translate(*sampled, "--n_best", "-k", 3)[1].count("\n") == 3 * 64
    status, said = translate("--sampling_temperature", 2)
    assert (
        status,
        "with --translation_strategy beam_s" in said,
    ) == (2, True)
    assert "draws from one model" in refused(
        run("translate", "-m", "model", "model", "-i", "dev.en", *sampled)
    )
