"""Options that forbid words, on scripted probabilities: the search equals one in NumPy over what is
allowed.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.constraints import constrain
from nmt.decoding.options import LENGTH_CONSTANT, LENGTH_FACTOR, DecodingOptions
from nmt.decoding.sampling import sample
from nmt.decoding.search import Hypotheses, beam_search
from nmt.errors import UserError
from tests.nmt.decoding.scripted import (
    END,
    START,
    beam_in_numpy,
    exhaustive,
    random_table,
    scripted,
)

UNKNOWN = 3
CASES = [
    {"min_length": 2},
    {"suppress_unknown": True},
    {"no_repeat_ngram": 1},
    {"no_repeat_ngram": 2},
    {"no_repeat_ngram": 3},
    {"min_length": 3, "suppress_unknown": True, "no_repeat_ngram": 2},
]
# Of two words, three that differ.
NOTHING = {
    "min_length": 3,
    "suppress_unknown": True,
    "no_repeat_ngram": 1,
}
cases = pytest.mark.parametrize("case", CASES, ids=str)


def allowed(sequence, options, ended, begun=0):
    """Returns whether a translation may be, or begin with, this sequence, of which the first words
    are a prefix.
    """
    size = options.no_repeat_ngram or len(sequence) + 1
    grams = [sequence[i : i + size] for i in range(len(sequence) - size + 1)]
    return (
        not any(grams[i] in grams[:i] for i in range(max(0, begun + 1 - size), len(grams)))
        and not (options.suppress_unknown and UNKNOWN in sequence[begun:])
        and not (ended and len(sequence) < options.min_length)
    )


def constrained(tables, options, limits, prefixes=None):
    """Returns the step for these tables, and what it starts with."""
    rows = tf.range(len(tables))
    state = (tf.zeros_like(rows), rows)
    prefixes = (
        None
        if prefixes is None
        else tf.ragged.constant(list(map(list, prefixes)), tf.int32, ragged_rank=1)
    )
    given = {"unknowns": (UNKNOWN,), "limits": tf.convert_to_tensor(limits), "prefixes": prefixes}
    return constrain(scripted(tables), state, tf.range(len(tables)), options, **given)


def search(tables, options, limits, prefixes=None, as_graph=False):
    def run():
        return beam_search(
            *constrained(tables, options, limits, prefixes),
            beam_size=options.beam_size,
            alpha=options.normalization_alpha,
            limits=tf.constant(limits),
            start=START,
        )

    found = (tf.function(run, autograph=False) if as_graph else run)()
    return Hypotheses(*(x.numpy() for x in found))


def assert_found(found, expected, alpha):
    """Checks the hypotheses of a sentence, best first; places without one have infinite costs and
    no words.
    """
    for i, (score, sequence) in enumerate(expected):
        assert tuple(found.words[i][: found.lengths[i]]) == sequence
        np.testing.assert_allclose(found.scores[i], score, rtol=1e-5)
        np.testing.assert_allclose(found.costs[i], score * (len(sequence) + 1) ** alpha, rtol=1e-5)
    assert np.isinf(found.scores[len(expected) :]).all()
    assert not found.words[len(expected) :].any()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("case", [*CASES, NOTHING], ids=str)
def test_a_wide_beam_finds_all_that_is_allowed(case, alpha):
    """Three words and a limit of three make 40 translations, so a beam of 40 loses none."""
    rng = np.random.default_rng(3)
    tables = [random_table(rng, 4, 4) for _ in range(2)]
    options = DecodingOptions(beam_size=40, normalization_alpha=alpha, n_best=True, **case)
    found = search(tables, options, [3, 3])
    for i, table in enumerate(tables):
        expected = [
            (score, words)
            for score, words in exhaustive(table, 3, alpha)
            if allowed(words, options, True)
        ]
        assert (len(expected) == 0) == (case == NOTHING)
        assert_found(Hypotheses(*(x[i] for x in found)), expected, alpha)


@pytest.mark.parametrize("case", [{}, {"min_length": 2, "no_repeat_ngram": 1}], ids=str)
def test_translations_begin_with_their_prefixes_at_full_cost(case):
    """Whatever the options forbid: a prefix has a word twice, an unknown word, or as many words as
    the limit.
    """
    rng = np.random.default_rng(3)
    prefixes = [(1, 1), (), (UNKNOWN,), (2, 1, 2)]
    tables = [random_table(rng, 4, 4) for _ in prefixes]
    options = DecodingOptions(beam_size=40, suppress_unknown=True, **case)
    found = search(tables, options, [3] * 4, prefixes, as_graph=True)
    for i, (table, prefix) in enumerate(zip(tables, prefixes, strict=True)):
        begun = len(prefix)
        expected = [
            (score, words)
            for score, words in exhaustive(table, 3, 1.0)
            if words[:begun] == prefix and allowed(words, options, True, begun)
        ]
        assert expected
        assert_found(Hypotheses(*(x[i] for x in found)), expected, 1.0)


def test_samples_begin_with_their_prefixes():
    table = np.full([4, 4, 4], 0.25)
    options = DecodingOptions(beam_size=50, n_best=True, translation_strategy="sampling")
    numbers = tf.range(2, dtype=tf.int64)
    limits = [3, 3]

    def run():
        given = constrained([table] * 2, options, limits, [[2], [3, 1]])
        return sample(*given, options, numbers, limits=limits, start=START)

    found = tf.function(run, autograph=False)()
    words = found.words.numpy()
    assert set(words[0, :, 0]) == {2}
    assert set(map(tuple, words[1, :, :2])) == {(3, 1)}
    assert len(set(words[0, :, 1])) == len(set(words[1, :, 2])) == 4
    np.testing.assert_allclose(found.costs, (found.lengths.numpy() + 1) * np.log(4), rtol=1e-5)


@functools.cache
def repetitive(beam_size):
    """Returns tables of a model that likes to repeat, limits, and what a free search finds."""
    rng = np.random.default_rng(5)
    limits = [8, 3, 5, 8, 8, 4, 6, 7, 8, 3]
    # Without ties.
    tables = [random_table(rng, 2, 7)[:1] * rng.uniform(0.9, 1.0, [9, 7, 7]) for _ in limits]
    return tables, limits, search(tables, DecodingOptions(beam_size=beam_size), limits).words[:, 0]


@pytest.mark.parametrize("beam_size", [1, 3])
@cases
def test_a_narrow_beam_is_that_of_numpy(case, beam_size):
    """For sentences with limits of their own, some of which leave the batch early."""
    tables, limits, free = repetitive(beam_size)
    options = DecodingOptions(beam_size=beam_size, **case)
    found = search(tables, options, limits)
    assert not all(allowed(tuple(words[words > 0]), options, True) for words in free)
    for i, (table, limit) in enumerate(zip(tables, limits, strict=True)):
        expected = beam_in_numpy(
            table, beam_size, 1.0, limit, lambda words, ended: allowed(words, options, ended)
        )
        assert_found(Hypotheses(*(x[i] for x in found)), [each[:2] for each in expected], 1.0)


def test_a_forbidden_word_is_no_word_of_the_padding():
    """The vocabulary is padded to blocks in which the best words are found.

    Only one of its words is allowed.
    """
    words = 41
    table = np.full([3, words, words], 1.0 / words)
    options = DecodingOptions(beam_size=1, min_length=1, no_repeat_ngram=1)
    table[0] = table[0] * 0.0
    table[0, :, 5] = 1.0
    with np.errstate(divide="ignore"):
        found = search([table], options, [2])
    assert found.words.max() < words
    assert found.words[0, 0, 0] == 5


@pytest.mark.parametrize("case", [*CASES, NOTHING], ids=str)
def test_samples_are_allowed_and_cost_what_the_model_says(case):
    rng = np.random.default_rng(7)
    table = random_table(rng, 4, 4)
    options = DecodingOptions(beam_size=500, n_best=True, translation_strategy="sampling", **case)
    given = constrained([table], options, [3])
    numbers = tf.range(1, dtype=tf.int64)
    drawn = sample(*given, options, numbers, limits=[3], start=START)
    found = Hypotheses(*(x.numpy()[0] for x in drawn))
    expected = {
        words: score for score, words in exhaustive(table, 3, 1.0) if allowed(words, options, True)
    }
    drawn = [
        tuple(words[:length])
        for words, length in zip(found.words, found.lengths.numpy(), strict=True)
    ]
    finite = np.isfinite(found.scores)
    assert {words for words, there in zip(drawn, finite, strict=True) if there} <= expected.keys()
    assert not found.words[~finite].any()
    assert finite.any() == bool(expected)
    np.testing.assert_allclose(
        found.scores[finite],
        [expected[words] for words in itertools.compress(drawn, finite)],
        rtol=1e-5,
    )


@pytest.mark.parametrize("start", [START, 1])
def test_the_word_before_the_first_is_no_word_of_an_ngram(start):
    """A Transformer begins with id 1, which is a word too."""
    options = DecodingOptions(beam_size=40, no_repeat_ngram=1)
    given = constrained([np.full([4, 4, 4], 0.25)], options, [3])
    beams = beam_search(*given, beam_size=40, alpha=1.0, limits=tf.constant([3]), start=start)
    found = Hypotheses(*(x.numpy()[0] for x in beams))
    words = {tuple(each[each > 0]) for each in found.words[np.isfinite(found.costs)]}
    assert words == {each for n in range(4) for each in itertools.permutations((1, 2, 3), n)}


def test_what_is_allowed_is_drawn_with_its_share_of_the_probability():
    tables = np.full([20, 2, 4, 4], [0.4, 0.1, 0.2, 0.3])
    options = DecodingOptions(
        beam_size=1000,
        n_best=True,
        translation_strategy="sampling",
        min_length=1,
        suppress_unknown=True,
    )
    numbers = tf.range(20, dtype=tf.int64)

    def run(limits):
        given = constrained(tables, options, limits)
        return sample(*given, options, numbers, limits=limits, start=START)

    found = tf.function(run, autograph=False)(tf.fill([20], 1))
    frequencies = np.bincount(found.words.numpy()[:, :, 0].ravel(), minlength=4) / 20_000
    np.testing.assert_allclose(frequencies, [0, 1 / 3, 2 / 3, 0], atol=0.01)
    assert frequencies[END] == frequencies[UNKNOWN] == 0


def test_without_constraints_the_step_is_the_given_one():
    given = (lambda: None, tf.zeros([1]), tf.zeros([1]))
    found = constrain(*given, DecodingOptions(), unknowns=(1,), limits=tf.constant([3]))
    assert all(one is other for one, other in zip(found, given, strict=True))


def test_the_limit_allows_the_shortest_translation():
    assert DecodingOptions(min_length=100).limits(2) == 2 * LENGTH_FACTOR + 100
    assert DecodingOptions(min_length=1).limits(2) == 2 * LENGTH_FACTOR + LENGTH_CONSTANT
    assert DecodingOptions(min_length=5, translation_maxlen=5).limits(2) == 5
    with pytest.raises(UserError, match="6 and --translation_maxlen 5"):
        DecodingOptions(min_length=6, translation_maxlen=5)
    with pytest.raises(UserError, match="--no_repeat_ngram is 0"):
        DecodingOptions(no_repeat_ngram=0)


def test_constraints_make_another_search():
    assert len({DecodingOptions(**case).search for case in [{}, *CASES]}) == 1 + len(CASES)
    assert DecodingOptions().search == "beam 5 alpha 1 limit None"
