"""Alignments: links, weights, and what the command writes."""

import json
from pathlib import Path

import numpy as np
import pytest

from nmt.decoding.alignment import Aligner, Alignment
from nmt.decoding.translator import Line
from nmt.text.vocabulary import Vocabularies
from tests.nmt.pairs import encode_pairs

MODELS = Path(__file__).parents[2] / "data" / "golden" / "models"
LINES = ["a b c", "", "d d"]
TRANSLATIONS = ["b a", "", "c d a b"]


def line(source, *words):
    """Returns a line whose best translation has these ids, of one piece or several."""
    pieces = [piece.encode() for piece in ([source] if isinstance(source, str) else source)]
    return Line([""], [0.0], list(words), [False], pieces, False, False)


def test_links_leave_out_the_ends():
    weights = np.array([[0.1, 0.3, 0.6], [0.5, 0.4, 0.1], [0.0, 0.0, 1.0]])
    assert Alignment(["a", "b", "eos"], ["x", "y", "eos"], weights).pharaoh() == "1-0 0-1"
    assert Alignment(["eos"], ["eos"], np.ones([1, 1])).pharaoh() == ""
    assert Alignment(["eos"], ["x", "eos"], np.ones([2, 1])).pharaoh() == ""


def test_weights_are_those_of_the_model_for_each_pair_alone(make_model, vocabulary):
    model = make_model(words=(vocabulary.size, vocabulary.size))
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(0.0, 0.5, size=weight.shape))
    ids = [vocabulary.encode([text]).to_list()[0] for text in TRANSLATIONS]
    found = Aligner(Vocabularies(vocabulary, vocabulary), model, 80).align(list(map(line, LINES, ids)))
    for text, translation, alignment in zip(LINES, TRANSLATIONS, found, strict=True):
        batch = encode_pairs([(text.encode(), translation.encode())], vocabulary, vocabulary)
        expected = model.attention(batch.source, batch.source_mask, batch.target)[0]
        np.testing.assert_allclose(alignment.weights, expected, rtol=1e-5)
        assert (alignment.source, alignment.target) == ([*text.split(), "eos"], [*translation.split(), "eos"])


def test_many_long_pairs_are_aligned_as_each_alone(make_model, vocabulary):
    model = make_model(words=(vocabulary.size, vocabulary.size))
    text = " ".join(["a b"] * 60)
    ids = vocabulary.encode([text]).to_list()[0]
    aligner = Aligner(Vocabularies(vocabulary, vocabulary), model, 80)
    (alone,) = aligner.align([line(text, ids[:7])])
    found = aligner.align([line(text, ids[:7])] * 50 + [line(text, ids)] * 50)  # more tokens than one batch may have
    assert [each.weights.shape for each in found] == [(8, 121)] * 50 + [(121, 121)] * 50
    np.testing.assert_allclose(found[0].weights, alone.weights, rtol=1e-5)


def test_a_line_in_pieces_is_not_aligned(make_model, vocabulary):
    aligner = Aligner(Vocabularies(vocabulary, vocabulary), make_model(words=(vocabulary.size, vocabulary.size)), 80)
    in_pieces, whole = aligner.align([line(["a b ", "c"], [2, 3, 4], [5]), line("c", [5])])
    assert (in_pieces.pharaoh(), in_pieces.as_json()) == ("", '{"source": [], "target": [], "weights": []}')
    assert whole.source == ["c", "eos"]


@pytest.mark.slow
def test_the_command_writes_links_and_weights(run, tmp_path):
    words = ("translate", "-m", MODELS / "layernorm", "-i", MODELS / "test.en", "-n")
    words = (*words, "--alignments", "links", "--alignment_weights", "weights")
    _, texts, _ = run(*words)
    assert texts == (MODELS / "layernorm.translated").read_text()
    links = (tmp_path / "links").read_text().splitlines()
    weights = list(map(json.loads, (tmp_path / "weights").read_text().splitlines()))
    for text, line, each in zip(texts.splitlines(), links, weights, strict=True):
        assert "".join(each["target"]) == f"▁{text}</s>"
        table = np.array(each["weights"])
        assert table.shape == (len(each["target"]), len(each["source"]))
        np.testing.assert_allclose(table.sum(1), 1.0, atol=1e-4)
        assert line == " ".join(f"{row[:-1].argmax()}-{j}" for j, row in enumerate(table[:-1]))
    for option in ("--alignment_weights", "--output"):
        status, _, said = run(*words, option, "links")
        assert (status, "name the same file" in said) == (2, True)
    status, _, said = run(*words, "--n_best")
    assert (status, "leave out --n_best" in said) == (2, True)


def test_models_without_a_single_attention_are_refused_in_one_line(run, train):
    assert train()[0] == 0  # of an architecture without attention
    for models in (["model"], ["model", "model"]):
        status, _, said = run("translate", "-m", *models, "-i", "train.en", "--alignments", "links")
        assert (status, said.count("\n"), "give -m one RNN" in said) == (2, 1, True)
