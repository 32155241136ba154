"""Translations of strings, and their scores."""

import json

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.options import LENGTH_CONSTANT, LENGTH_FACTOR, DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.decoding.translator import Translations, Translator, join_translations
from nmt.text.batches import LONGEST, ragged
from nmt.text.sentencepiece_training import train_sentencepiece
from nmt.text.vocabulary import Vocabularies, load_vocabulary
from tests.nmt.outcomes import best
from tests.nmt.pairs import encode_pairs

LINES = ["a b c", "", "d", "x a d d b", "a b c"]
OPTIONS = DecodingOptions(beam_size=3, translation_maxlen=10)


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
        return Translator(Vocabularies(vocabulary, vocabulary), model, OPTIONS)

    return make


def beams(translator, lines):
    """Returns the translations of each line with their scores, best first."""
    return [list(zip(line.texts, line.scores, strict=True)) for line in translator.lines(lines)]


def test_translations_are_ranked_and_an_empty_line_stays_empty(make_translator, vocabulary, kind):
    found = beams(make_translator(vocabulary, kind), LINES)
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
    found = beams(Translator(Vocabularies(vocabulary, vocabulary), model, OPTIONS), LINES[2:])
    pairs = []
    scores = []
    for line, beam in zip(LINES[2:], found, strict=True):
        assert len(beam) == 3
        pairs += [(line.encode(), text.encode()) for text, _ in beam]
        scores += [score for _, score in beam]
    batch = encode_pairs(pairs, vocabulary, vocabulary)
    np.testing.assert_allclose(
        scores, model.costs(*batch) / tf.reduce_sum(batch.target_mask, 1), rtol=1e-4
    )


@pytest.mark.slow
def test_a_refreshed_translator_follows_the_weights(make_random_model, vocabulary):
    """It has kept the table of the output layer."""
    model = make_random_model("layernorm", vocabulary)
    both = Vocabularies(vocabulary, vocabulary)
    translator = Translator(both, model, OPTIONS)
    for weight in model.weights:
        weight.assign(-weight)
    translator.refresh()
    assert beams(translator, LINES) == beams(Translator(both, model, OPTIONS), LINES)


def test_long_lines_are_translated_as_each_alone(make_translator, vocabulary):
    """Together they have more tokens than a batch may have."""
    words = "a b c d " * 300
    lines = [words[2 * i : 4 * i + 1800] for i in range(20)] + ["a b"]
    translator = make_translator(vocabulary)
    assert best(translator, lines) == [best(translator, [line])[0] for line in lines]


def test_a_line_that_is_too_long_is_translated_in_pieces(make_translator, vocabulary):
    """Nothing is dropped: the translation is that of all pieces, and costs what they cost
    together."""
    translator = make_translator(vocabulary)
    long = "a b c d " * 300
    short, found = translator.lines(["a b", long])
    assert (len(short.pieces), len(found.pieces)) == (1, 2)
    assert np.concatenate(found.pieces).tolist() == vocabulary.encode([long]).to_list()[0]
    assert all(0 < len(piece) <= LONGEST for piece in found.pieces)
    parts = translator.lines(vocabulary.decode(ragged(found.pieces)).numpy().tolist())
    assert found.texts[0] == " ".join(part.texts[0] for part in parts)
    assert found.words == [part.words[0] for part in parts]
    lengths = [len(part.words[0]) + 1 for part in parts]
    cost = sum(part.scores[0] * length for part, length in zip(parts, lengths, strict=True))
    np.testing.assert_allclose(found.scores[0], cost / (sum(lengths) - 1), rtol=1e-5)


def test_the_pieces_of_a_line_are_drawn_each_for_itself(make_random_model, vocabulary):
    """Equal pieces have different samples."""
    options = DecodingOptions(translation_strategy="sampling", translation_maxlen=20)
    translator = Translator(
        Vocabularies(vocabulary, vocabulary), make_random_model("none", vocabulary), options
    )
    (line,) = translator.lines(["a b c d " * 300])
    np.testing.assert_array_equal(*line.pieces)
    assert line.words[0] != line.words[1]


def test_the_translations_of_a_line_in_pieces_are_best_first():
    """The second of both pieces together are better than the first: they are longer.

    An infinite score is none.
    """
    none = float("inf")
    words = np.arange(27).reshape(3, 9)
    first = Translations(
        [b"", b"a", b"c"], words, [none, 1.0, 11.0], None, [True, False, True], [0, 0, 9]
    )
    second = Translations(
        [b"b", b"d", b"e"], words, [2.0, 21.0, none], None, [False, False, True], [0, 9, 0]
    )
    found = join_translations([first, second], [b"A ", b"B"], 1.0)
    assert [each[0] for each in found] == ["c d", "a b"]
    np.testing.assert_allclose([each[1] for each in found], [(11 + 21) / 19, (1 + 2) / 1])
    assert [each[3] for each in found] == [True, False]
    assert [list(map(len, each[2])) for each in found] == [[9, 9], [0, 0]]


def test_a_translation_that_reaches_the_limit_is_called_cut(make_random_model, vocabulary):
    model = make_random_model("layernorm", vocabulary)
    bias = model.decoder.output_bias
    bias.assign(bias.numpy() - 100.0 * np.eye(vocabulary.size)[0])  # never ends by itself
    translator = Translator(
        Vocabularies(vocabulary, vocabulary), model, DecodingOptions(beam_size=2)
    )
    lines = translator.lines(["a b c", "", "d"])
    assert [line.cut[0] for line in lines] == [True, False, True]
    assert [len(line.words[0]) for line in lines] == [
        3 * LENGTH_FACTOR + LENGTH_CONSTANT,
        0,
        LENGTH_FACTOR + LENGTH_CONSTANT,
    ]
    bias.assign(bias.numpy() + 200.0 * np.eye(vocabulary.size)[0])
    assert not any(any(line.cut) for line in translator.lines(["a b c", "", "d"]))


@pytest.mark.slow
def test_an_id_without_a_word_is_an_unknown_word_too(make_random_model, dictionary):
    """The vocabulary has two more ids than words, which decode to the unknown word."""
    vocabulary = load_vocabulary(dictionary, 8)
    assert vocabulary.decode(tf.ragged.constant([[1, 2, 6, 7]])) == b"UNK a UNK UNK"
    model = make_random_model("layernorm", vocabulary)
    usual, without = (
        Translator(
            Vocabularies(vocabulary, vocabulary),
            model,
            DecodingOptions(beam_size=3, suppress_unknown=suppress),
        )
        for suppress in (False, True)
    )
    assert "UNK" in " ".join(best(usual, LINES))
    found = without.lines(LINES)
    assert all(set(ids) <= {2, 3, 4, 5} for line in found for ids in line.words)
    assert any(ids for line in found for ids in line.words)


def test_a_translation_begins_with_its_prefix(make_random_model, vocabulary):
    """The costs of its words are part of the cost.

    Lines without a prefix are translated as ever.
    """
    model = make_random_model("layernorm", vocabulary)
    translator = Translator(Vocabularies(vocabulary, vocabulary), model, OPTIONS)
    lines = ["a b c", "d", "", "", "a b c d " * 300]
    usual = translator.lines(lines)
    begins_with_a = usual[4].words[1][:1] == vocabulary.encode(["a"]).to_list()[0]
    # The second piece of the long line does not begin so by itself.
    other = "b" if begins_with_a else "a"
    found = translator.lines(lines, prefixes=["c c", "", "d a x", "", other])
    for line, prefix in zip(found, ["c c", "", "d a UNK", "", other], strict=True):
        assert line.texts[0].startswith(prefix)
    assert [line.unknown_prefix for line in found] == [False, False, True, False, False]
    assert [found[i].texts for i in (1, 3)] == [usual[i].texts for i in (1, 3)]
    assert found[4].words[1:] == usual[4].words[1:]  # only the first piece has the prefix
    for line, each in zip(lines[:3], found[:3], strict=True):
        batch = encode_pairs([(line.encode(), each.texts[0].encode())], vocabulary, vocabulary)
        np.testing.assert_allclose(
            each.scores[0], model.costs(*batch)[0] / batch.target.shape[1], rtol=1e-4
        )
    (line,) = translator.lines(["a"], prefixes=["a b " * 6])
    assert (len(line.words[0]), line.texts[0].split()[:10], all(line.cut)) == (
        10,
        ["a", "b"] * 5,
        True,
    )
    # The end is likelier than any word.
    model.decoder.output_bias.assign(200.0 * np.eye(vocabulary.size)[0])
    translator = Translator(Vocabularies(vocabulary, vocabulary), model, OPTIONS)
    # As long as it may be, and longer.
    lines = translator.lines(["a", "a"], prefixes=["a b " * 5, "a b " * 6])
    assert [(len(line.words[0]), line.cut[0]) for line in lines] == [(10, False), (10, True)]


@pytest.fixture
def subwords(tmp_path, write_lines):
    """A vocabulary that spells most words in several ways."""
    text = write_lines("text", ["abc bca cab acb abab bcbc caca"] * 20)
    (tmp_path / "made.model").write_bytes(train_sentencepiece(text, 24))
    return load_vocabulary(tmp_path / "made.model")


@pytest.mark.slow
def test_the_cost_of_units_is_that_of_the_translation(make_random_model, subwords):
    """However the model spells a text.

    As text, it has another cost, because the vocabulary spells it otherwise.
    """
    model = make_random_model("layernorm", subwords)
    both = Vocabularies(subwords, subwords)
    given = {"n_best": True, "translation_strategy": "sampling"}
    sources = ["abc", "cab bca", "", "abab"]
    prefix = "\u2581 a b"
    differs = 0
    for units in (True, False):
        options = DecodingOptions(units=units, beam_size=3, **given)
        lines = Translator(both, model, options).lines(
            sources, prefixes=[prefix if units else "ab"] * 4
        )
        pairs = []
        for source, line in zip(sources, lines, strict=True):
            pairs += [(source.encode(), text.encode()) for text in line.texts]
        costs = Scorer(both, model, options).scores_of(pairs)
        scores = [score for line in lines for score in line.scores]
        if units:
            np.testing.assert_allclose(costs, scores, rtol=1e-4)
            assert all(text.startswith(prefix.encode()) for _, text in pairs)
        else:
            differs = (~np.isclose(costs, scores, rtol=1e-3)).sum()
    assert differs > 2


@pytest.mark.slow
def test_units_of_a_line_in_pieces_are_those_of_its_pieces(make_random_model, subwords):
    model = make_random_model("layernorm", subwords)
    translator = Translator(
        Vocabularies(subwords, subwords), model, DecodingOptions(units=True, beam_size=1)
    )
    (line,) = translator.lines(["abc" * 700])  # no spaces
    assert len(line.pieces) > 1
    ids = subwords.ids_of_units(tf.constant([line.texts[0]])).to_list()[0]
    assert ids == [word for words in line.words for word in words]


def test_a_translation_has_no_line_breaks(make_random_model, tmp_path):
    (tmp_path / "words.json").write_text(
        json.dumps({"eos": 0, "UNK": 1, "x\ry": 2, "x\n\ny": 3, "x\r\ny": 4})
    )
    vocabulary = load_vocabulary(tmp_path / "words.json")
    for units in (True, False):
        options = DecodingOptions(beam_size=3, translation_maxlen=10, units=units)
        translator = Translator(
            Vocabularies(vocabulary, vocabulary), make_random_model("none", vocabulary), options
        )
        texts = [text for line in translator.lines(["UNK", "UNK UNK"]) for text in line.texts]
        assert any("x y" in text for text in texts)
        assert not any("\r" in text or "\n" in text for text in texts)


@pytest.mark.slow
def test_a_line_with_as_many_unknown_words_as_others_is_called_unknown(make_translator, vocabulary):
    lines = make_translator(vocabulary).lines(["a x", "a b x", "x", "", "a"])
    assert [line.unknown for line in lines] == [True, False, True, False, False]


@pytest.mark.slow
def test_samples_depend_on_the_number_of_the_line_in_its_text(make_random_model, vocabulary):
    options = DecodingOptions(translation_strategy="sampling", translation_maxlen=20)
    translator = Translator(
        Vocabularies(vocabulary, vocabulary), make_random_model("none", vocabulary), options
    )
    lines = ["a b c", "d a", "b b b"]
    whole = [line.words for line in translator.lines(lines)]
    assert [line.words for line in translator.lines(lines[1:], first=1)] == whole[1:]
    assert [line.words for line in translator.lines(lines[1:])] != whole[1:]
