"""Translations of strings, and their scores."""

import numpy as np
import pytest

from nmt.decoding.translator import Translator
from nmt.text.batches import encode_pairs

LINES = ["a b c", "", "d", "x a d d b", "a b c"]


@pytest.fixture
def make_random_model(make_model):
    """Makes a model with random weights, large enough that translations differ."""

    def make(kind, vocabulary):
        model = make_model(kind, words=(vocabulary.size, vocabulary.size))
        rng = np.random.default_rng(1)
        for weight in model.weights:
            weight.assign(rng.normal(0.0, 1.0, size=weight.shape))
        bias = model.decoder.output_bias
        bias.assign(bias.numpy() - 3.0 * np.eye(vocabulary.size)[0])  # the end is less likely
        return model

    return make


@pytest.fixture
def make_translator(make_random_model):
    """Makes a translator with random weights."""

    def make(vocabulary, kind="layernorm"):
        model = make_random_model(kind, vocabulary)
        return Translator(vocabulary, vocabulary, model, beam_size=3, alpha=1.0, max_length=10)

    return make


def test_translations_are_ranked_and_an_empty_line_stays_empty(make_translator, vocabulary, kind):
    found = make_translator(vocabulary, kind).n_best(LINES)
    assert len(found) == len(LINES)
    for line, beam in zip(LINES, found, strict=True):
        costs = [cost for _, cost in beam]
        assert costs == sorted(costs)
        if not line:
            assert beam == [("", 0.0)]
    first, last = ([*zip(*found[i], strict=True)] for i in (0, 4))  # the same line twice
    assert first[0] == last[0]
    np.testing.assert_allclose(first[1], last[1], rtol=1e-5)
    assert len({beam[0][1] for beam in found[:4]}) == 4  # each line its own score


def test_scores_are_the_costs_of_the_translations(make_random_model, vocabulary):
    """A score is the model's cost of the translation, divided by its length with the end."""
    model = make_random_model("layernorm", vocabulary)
    translator = Translator(vocabulary, vocabulary, model, beam_size=3, alpha=1.0, max_length=10)
    for line in ("a b c", "d", "x a d d b"):
        (beam,) = translator.n_best([line])
        assert len(beam) == 3
        for text, score in beam:
            batch = encode_pairs([(line.encode(), text.encode())], vocabulary, vocabulary)
            np.testing.assert_allclose(score, model.costs(*batch)[0] / batch.target.shape[1], rtol=1e-4)


def test_long_lines_are_translated_in_pieces_with_the_same_results(make_translator, vocabulary, monkeypatch):
    """The memory of 20 lines of a thousand tokens is that of a few."""
    lines = [" ".join("abcd"[(i + j) % 4] for j in range(900 + i)) for i in range(20)] + ["a b"]
    translator, most = make_translator(vocabulary), []
    translate = translator.translate
    translator.translate = lambda batch: most.append(int(batch.shape[0])) or translate(batch)
    together = translator.best(lines)
    assert max(most) <= 9  # 8192 tokens, padding counted
    assert sum(most) == len(lines)
    assert together == [translator.best([line])[0] for line in lines]


def test_no_lines(make_translator, vocabulary):
    assert make_translator(vocabulary).best([]) == []
