"""Beam search on scripted probabilities, with known results."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.search import Hypotheses, beam_search
from tests.nmt.decoding.scripted import (
    END,
    START,
    beam_in_numpy,
    exhaustive,
    random_table,
    scripted,
)


def search(tables, beam_size, limits, alpha=0.0, compiled=True):
    """Searches all tables at once, with one limit or a limit for each."""
    sentences = len(tables)

    def run():
        rows = tf.range(sentences)
        state = (tf.zeros_like(rows), rows)
        return beam_search(
            scripted(tables),
            state,
            tf.range(sentences),
            beam_size=beam_size,
            alpha=alpha,
            limits=tf.broadcast_to(limits, [sentences]),
            start=START,
        )

    return Hypotheses(*(x.numpy() for x in (tf.function(run) if compiled else run)()))


def test_sentences_whose_search_has_stopped_leave_the_batch():
    """Sentence i of eight has i words, with certainty."""
    lengths = np.arange(8)
    tables = np.full([8, 9, 3, 3], 1e-9)
    for table, length in zip(tables, lengths, strict=True):
        table[:length, :, 1] = table[length:, :, END] = 1.0
    sizes = []
    rows = []
    step = scripted(tables)

    def counted(words, state, memory):
        sizes.append(len(memory))
        rows.append(len(words))
        return step(words, state, memory)

    state = (tf.zeros(8, tf.int32), tf.range(8))
    options = {"beam_size": 2, "alpha": 1.0, "limits": tf.fill([8], 8), "start": START}
    found = beam_search(counted, state, tf.range(8), **options)
    np.testing.assert_array_equal(found.lengths[:, 0], lengths)
    np.testing.assert_array_equal(found.words[:, 0] == 1, np.arange(8) < lengths[:, np.newaxis])
    assert sizes[0] == 8
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    # The hypotheses are equal at the first step.
    assert rows == [
        8,
        *(2 * size for size in sizes[1:]),
    ]


def test_greedy_takes_the_likeliest_word_each_time():
    """The likeliest first word leads to a worse translation. Beam 1 follows it, beam 2 does not."""
    sure_end = [1.0 - 3e-6, 1e-6, 1e-6, 1e-6]
    table = [
        [[0.0001, 0.5499, 0.45, 0.0], *[sure_end] * 3],
        [sure_end, [0.4, 0.2, 0.2, 0.2], [0.9, 0.05, 0.025, 0.025], sure_end],
        [sure_end] * 4,
    ]
    table = np.maximum(table, 1e-9)
    greedy, beam = (search([table], size, 3, compiled=False) for size in (1, 2))
    np.testing.assert_array_equal(greedy.words[0, 0], [1, END, END])
    np.testing.assert_allclose(greedy.costs[0, 0], -np.log(0.5499 * 0.4), rtol=1e-5)
    np.testing.assert_array_equal(beam.words[0], [[2, END, END], [1, END, END]])
    np.testing.assert_allclose(beam.costs[0, 0], -np.log(0.45 * 0.9), rtol=1e-5)
    np.testing.assert_array_equal(beam.lengths, [[1, 1]])


@pytest.mark.parametrize(
    ("seed", "compiled"),
    [(0, True), (0, False), (1, False), (2, False)],
    ids=["0-graph", "0-eager", "1-eager", "2-eager"],
)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_wide_beam_equals_exhaustive_search(seed, alpha, compiled):
    """Three words and a limit of three allow at most 3**3 open hypotheses, so a beam of 40 loses
    none.
    """
    rng = np.random.default_rng(seed)
    tables = [random_table(rng, 4, 4) for _ in range(2)]
    found = search(tables, 40, 3, alpha, compiled)
    for i, table in enumerate(tables):
        expected = exhaustive(table, 3, alpha)
        scores, sequences = zip(*expected, strict=True)
        lengths = found.lengths[i].numpy()
        assert len(expected) == 40
        np.testing.assert_allclose(found.scores[i], scores, rtol=1e-5)
        np.testing.assert_allclose(
            found.costs[i], found.scores[i] * (lengths + 1) ** alpha, rtol=1e-5
        )
        for words, length, sequence in zip(found.words[i], lengths, sequences, strict=True):
            assert tuple(words[:length]) == sequence
            assert not words[length:].any()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_search_is_that_of_its_description(beam_size, alpha):
    """On 200 random tables, each with a limit of its own, a third of them so short that it cuts."""
    rng = np.random.default_rng(beam_size)
    tables = [random_table(rng, 9, 6) for _ in range(200)]
    limits = rng.choice([0, 2, 5, 8, 8, 8], size=200).astype(np.int32)
    found = search(tables, beam_size, limits, alpha)
    for i, (table, limit) in enumerate(zip(tables, limits, strict=True)):
        expected = beam_in_numpy(table, beam_size, alpha, limit)
        lengths = found.lengths[i].numpy()
        count = len(expected)
        assert np.isfinite(found.scores[i]).sum() == count
        assert [
            tuple(words[:length]) for words, length in zip(found.words[i], lengths, strict=True)
        ][:count] == [words for _, words, _ in expected]
        np.testing.assert_allclose(
            found.scores[i][:count], [score for score, _, _ in expected], rtol=1e-4
        )
        assert found.cut[i][:count].tolist() == [cut for _, _, cut in expected]


@pytest.mark.parametrize("alpha", [pytest.param(0.0, marks=pytest.mark.slow), 1.0])
@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_sentence_has_the_same_result_in_any_batch(beam_size, alpha):
    rng = np.random.default_rng(7)
    tables = [random_table(rng, 6, 5) for _ in range(40)]
    together = search(tables, beam_size, 5, alpha)
    for i in range(0, 40, 4):
        for one, all_ in zip(
            search(tables[i : i + 1], beam_size, 5, alpha, compiled=False), together, strict=True
        ):
            np.testing.assert_array_equal(one[0], all_[i])


def test_no_sentences():
    found = search(np.zeros([0, 3, 4, 4]), 2, 2)
    assert found.words.shape[:2] == found.scores.shape == (0, 2)
