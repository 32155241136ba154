"""Beam search on scripted probabilities, with known results."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.search import Hypotheses, beam_search
from tests.nmt.decoding.scripted import END, START, exhaustive, random_table, scripted


def search(tables, beam_size, max_length, alpha=0.0, compiled=True):
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
            limits=tf.fill([sentences], max_length),
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


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_of_one_stops_at_the_first_end(alpha):
    """The end is the likeliest after the first word. Going on would score better."""
    table = np.full([4, 3, 3], 1e-9)
    table[0] = [0.2, 0.7, 0.1]
    table[1:3] = [0.6, 0.4, 1e-9]
    table[2] = [1e-9, 1.0, 1e-9]
    table[3] = [1.0, 1e-9, 1e-9]
    np.testing.assert_array_equal(search([table], 1, 3, alpha).words[0, 0], [1, END, END])


def test_greedy_takes_the_likeliest_word_each_time():
    """The likeliest first word leads to a worse translation. Beam 1 follows it, beam 2 does not."""
    sure_end = [1.0 - 3e-6, 1e-6, 1e-6, 1e-6]
    table = [
        [[0.0001, 0.5499, 0.45, 0.0], *[sure_end] * 3],
        [sure_end, [0.4, 0.2, 0.2, 0.2], [0.9, 0.05, 0.025, 0.025], sure_end],
        [sure_end] * 4,
    ]
    table = np.maximum(table, 1e-9)
    greedy = search([table], 1, 3)
    beam = search([table], 2, 3)
    np.testing.assert_array_equal(greedy.words[0, 0], [1, END, END])
    np.testing.assert_allclose(greedy.costs[0, 0], -np.log(0.5499 * 0.4), rtol=1e-5)
    np.testing.assert_array_equal(beam.words[0], [[2, END, END], [1, END, END]])
    np.testing.assert_allclose(beam.costs[0, 0], -np.log(0.45 * 0.9), rtol=1e-5)
    np.testing.assert_array_equal(beam.lengths, [[1, 1]])


@pytest.mark.parametrize("compiled", [True, False], ids=["graph", "eager"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
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


def reference(table, beam_size, alpha, limit):
    """The search of one sentence, as the docstring of the module describes it: (score, words, cut),
    best first.
    """
    opened = [(0.0, ())]
    finished = []
    for time in range(limit + 1):
        extensions = []
        for cost, words in opened:
            costs = cost - np.log(np.float64(table[time][words[-1] if words else 0]))
            likeliest = costs.argmin()
            allowed = [END] if time == limit else range(len(costs))
            extensions += [
                (costs[word], words, word, time == limit and likeliest != END) for word in allowed
            ]
        extensions.sort(key=lambda extension: extension[0])
        finished += [
            (cost / (len(words) + 1) ** alpha, words, cut)
            for cost, words, word, cut in extensions[:beam_size]
            if word == END
        ]
        finished = sorted(finished, key=lambda each: each[0])[:beam_size]
        opened = [(cost, (*words, word)) for cost, words, word, _ in extensions if word != END][
            :beam_size
        ]
        best_open = min(
            (cost / (len(words) + 1) ** alpha for cost, words in opened), default=np.inf
        )
        if len(finished) == beam_size and (beam_size == 1 or best_open >= finished[-1][0]):
            break
    return finished


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_search_is_that_of_its_description(beam_size, alpha):
    """On 200 random tables, each with a limit of its own, a third of them so short that it cuts."""
    rng = np.random.default_rng(beam_size)
    tables = [random_table(rng, 9, 6) for _ in range(200)]
    limits = rng.choice([0, 2, 5, 8, 8, 8], size=200).astype(np.int32)
    rows = tf.range(200)

    @tf.function
    def run():
        state = (tf.zeros_like(rows), rows)
        return beam_search(
            scripted(tables),
            state,
            rows,
            beam_size=beam_size,
            alpha=alpha,
            limits=tf.constant(limits),
            start=START,
        )

    found = Hypotheses(*(x.numpy() for x in run()))
    for i, (table, limit) in enumerate(zip(tables, limits, strict=True)):
        expected = reference(table, beam_size, alpha, limit)
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
    for i, table in enumerate(tables):
        for one, all_ in zip(
            search([table], beam_size, 5, alpha, compiled=False), together, strict=True
        ):
            np.testing.assert_array_equal(one[0], all_[i])


def test_a_translation_ends_at_the_greatest_length():
    """The model prefers to go on. After four words only the end is allowed, at its full cost."""
    table = np.full([9, 3, 3], [0.01, 0.98, 0.01])
    greedy = search([table], 1, 4)
    beam = search([table], 2, 4, alpha=1.0)
    for found in (greedy, beam):
        np.testing.assert_array_equal(found.words[0, 0], [1, 1, 1, 1])
        np.testing.assert_allclose(found.costs[0, 0], -np.log(0.98**4 * 0.01), rtol=1e-5)
    np.testing.assert_array_equal(beam.lengths, [[4, 3]])
    np.testing.assert_allclose(
        beam.scores[0], [score for score, _ in exhaustive(table, 4, 1.0)[:2]], rtol=1e-5
    )
    np.testing.assert_allclose(
        search([table], 2, 4).costs[0], [cost for cost, _ in exhaustive(table, 4)[:2]], rtol=1e-5
    )


def test_each_sentence_has_its_own_limit_and_what_it_ends_is_cut():
    """The model prefers to go on in the first two sentences, and to end after two words in the
    last.
    """
    on = np.full([9, 3, 3], [0.01, 0.98, 0.01])
    end = np.full([9, 3, 3], [0.01, 0.98, 0.01])
    end[2] = [0.98, 0.01, 0.01]
    tables = [on, on, end]
    found = beam_search(
        scripted(tables),
        (tf.zeros(3, tf.int32), tf.range(3)),
        tf.range(3),
        beam_size=2,
        alpha=1.0,
        limits=tf.constant([4, 1, 2]),
        start=START,
    )
    np.testing.assert_array_equal(found.lengths[:, 0], [4, 1, 2])
    np.testing.assert_array_equal(found.cut[:, 0], [True, True, False])
    np.testing.assert_allclose(found.costs[1, 0], -np.log(0.98 * 0.01), rtol=1e-5)


def test_missing_hypotheses_have_infinite_cost():
    """A vocabulary of one word and a limit of two words allow three sequences."""
    table = np.full([3, 2, 2], 0.5)
    found = search([table], 5, 2)
    np.testing.assert_array_equal(np.isinf(found.costs[0]), [False, False, False, True, True])
    np.testing.assert_array_equal(found.lengths[0], [0, 1, 2, 0, 0])


def test_no_sentences():
    found = search(np.zeros([0, 3, 4, 4]), 2, 2)
    assert found.words.shape[:2] == found.scores.shape == (0, 2)


def test_an_unlikely_end_is_not_finished():
    """Ending at once costs less than five words and an end, but each step has two words that cost
    less than the end.
    """
    table = np.full([7, 4, 4], [0.1, 0.45, 0.45, 1e-9])
    table[1:] = [1e-9, 0.5, 0.3, 0.2]
    table[5:] = [1.0, 1e-9, 1e-9, 1e-9]
    found = search([table], 2, 6)
    np.testing.assert_array_equal(found.lengths, [[5, 5]])


def test_alpha_prefers_longer_translations():
    """One word and the end cost log 4; three words and the end cost log 2 + 2 log 5/3: more in
    total, less per word.
    """
    table = np.full([4, 3, 3], 1e-9)
    table[0] = [1e-9, 0.5, 0.5]
    table[1] = [[1e-9] * 3, [0.5, 0.5, 1e-9], [1e-9, 1e-9, 1.0]]
    table[2, :] = [1e-9, 0.6, 1e-9]
    table[3, :] = [0.6, 1e-9, 1e-9]
    by_cost = search([table], 3, 3)
    by_length = search([table], 3, 3, alpha=1.0)
    assert by_cost.lengths[0, 0] == 1
    np.testing.assert_allclose(by_cost.costs[0, 0], np.log(4), rtol=1e-5)
    assert by_length.lengths[0, 0] == 3
    np.testing.assert_allclose(by_length.scores[0, 0], -np.log(0.5 * 0.6 * 0.6) / 4, rtol=1e-5)
