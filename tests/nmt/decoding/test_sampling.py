"""Random translations: from which distribution they are drawn, their costs, and the command."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.sampling import Sampling, sample

P = np.array([0.1, 0.2, 0.3, 0.4])  # of the end and of words 1 to 3
DRAWS = 20_000


def draw(sampling, number=1, max_length=3):
    """Draws from a model that gives every word the same probabilities at every step."""

    def step(words, state, memory):
        return tf.tile(tf.constant(np.log(P), tf.float32)[tf.newaxis], [tf.shape(words)[0], 1]), state

    state = tf.zeros([2 * DRAWS, 1])
    lengths = {"max_length": max_length, "start": -1, "end": 0}
    return sample(step, state, (), sampling, tf.constant(number), batch=2, samples=DRAWS, alpha=0.0, **lengths)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), P),
        (Sampling(temperature=0.5), P**2 / (P**2).sum()),
        (Sampling(top_k=2), np.array([0.0, 0.0, 0.3, 0.4]) / 0.7),
        (Sampling(temperature=0.5, top_k=2), np.array([0.0, 0.0, 0.09, 0.16]) / 0.25),
    ],
)
def test_words_have_the_frequencies_of_the_distribution(sampling, expected):
    """To three standard deviations or so, for each of two sentences."""
    words = draw(sampling).words.numpy()
    for sentence in words:
        frequencies = np.bincount(sentence[:, 0], minlength=4) / DRAWS
        np.testing.assert_allclose(frequencies, expected, atol=3 * 0.5 / DRAWS**0.5)
    assert (words[0] != words[1]).any()


def test_costs_are_those_of_the_model_and_rank_the_samples():
    """Whatever the temperature. A translation of the longest length must end then."""
    found = draw(Sampling(temperature=2.0))
    words, lengths, costs = found.words.numpy(), found.lengths.numpy(), found.costs.numpy()
    assert lengths.max() == 3
    assert lengths.min() == 0
    drawn = np.arange(3) <= lengths[..., np.newaxis]  # words and the end, if it is in the matrix
    expected = (-np.log(P)[words] * drawn).sum(-1) - np.where(lengths == 3, np.log(P[0]), 0.0)
    np.testing.assert_allclose(costs, expected, rtol=1e-5)
    assert (np.diff(costs) >= 0).all()


def test_the_seed_and_the_number_of_the_batch_decide():
    first, again, other, later = draw(Sampling()), draw(Sampling()), draw(Sampling(seed=5)), draw(Sampling(), 2)
    assert np.array_equal(first.words, again.words)
    assert not np.array_equal(first.words, other.words)
    assert not np.array_equal(first.words, later.words)


@pytest.mark.slow
def test_the_command_draws_the_same_again(run, trained):
    def translate(*words):
        status, out, said = run("translate", "-m", "model", "-i", "dev.en", "-b", 30, *words)
        return status, out or said

    sampled = ("--translation_strategy", "sampling")
    status, first = translate(*sampled)
    assert (status, first.count("\n")) == (0, 64)
    assert translate(*sampled)[1] == first
    assert translate(*sampled, "--seed", 5)[1] != first
    assert translate(*sampled, "--sampling_top_k", 1)[1] == translate("-k", 1)[1]
    assert translate(*sampled, "--n_best", "-k", 3)[1].count("\n") == 3 * 64
    status, said = translate("--sampling_temperature", 2)
    assert (status, "give --translation_strategy sampling" in said) == (2, True)
