"""Alignments: links, and what the command writes."""

from pathlib import Path

import numpy as np
import pytest

from nmt.decoding.ensemble import Ensemble
from nmt.decoding.scoring import Aligner
from nmt.decoding.translator import Line
from nmt.errors import UserError
from tests.nmt.outcomes import refused
from tests.nmt.pairs import encode_pairs

MODELS = Path(__file__).parents[2] / "data" / "golden" / "models"
LINES = ["a b c", "", "d d"]
TRANSLATIONS = ["b a", "", "c d a b"]


def line(*pieces):
    """Returns a line of one piece or several, each the ids of its source and its translation."""
    sources, words = map(list, zip(*pieces, strict=True))
    return Line([""], [0.0], words, [False], sources, False, False)


def random(model):
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(0.0, 0.5, size=weight.shape))
    return model


def test_links_are_the_largest_weights_of_the_model_for_each_pair_alone(
    make_model, vocabulary, eagerly
):
    """Without the ends."""
    model = random(make_model(words=(vocabulary.size, vocabulary.size)))
    sides = (vocabulary.encode(texts).to_list() for texts in (LINES, TRANSLATIONS))
    found = Aligner(model, 80).align([line(pair) for pair in zip(*sides, strict=True)])
    for text, translation, links in zip(LINES, TRANSLATIONS, found, strict=True):
        batch = encode_pairs([(text.encode(), translation.encode())], vocabulary, vocabulary)
        weights = model.attention(batch.source, batch.source_mask, batch.target)[0].numpy()[
            :-1, :-1
        ]
        expected = [f"{weight.argmax()}-{j}" for j, weight in enumerate(weights)] if text else []
        assert links.split() == expected


@pytest.mark.slow
def test_many_long_pairs_are_aligned_as_each_alone(make_model, vocabulary):
    model = random(make_model(words=(vocabulary.size, vocabulary.size)))
    ids = vocabulary.encode([" ".join(["a b"] * 60)]).to_list()[0]
    aligner = Aligner(model, 80)
    (short,), (long,) = (aligner.align([line((ids, words))]) for words in (ids[:7], ids))
    assert (len(short.split()), len(long.split())) == (7, 120)
    # More tokens than one batch may have.
    many = [line((ids, ids[:7]))] * 50 + [line((ids, ids))] * 50
    assert aligner.align(many) == [short] * 50 + [long] * 50


def test_a_line_in_pieces_is_not_aligned(make_model, vocabulary, eagerly):
    aligner = Aligner(make_model(words=(vocabulary.size, vocabulary.size)), 80)
    assert aligner.align([line(([2, 3], [2, 3, 4]), ([4], [5])), line(([4], [5]))]) == ["", "0-0"]
    assert aligner.align([line(([], [5]))]) == [""]  # nothing to link with


@pytest.mark.slow
def test_the_command_writes_the_links_of_each_line(run, tmp_path):
    words = (
        "translate",
        "-m",
        MODELS / "layernorm",
        "-i",
        MODELS / "test.en",
        "-n",
        "--alignments",
        "links",
    )
    _, texts, _ = run(*words)
    assert texts == (MODELS / "layernorm.translated").read_text()
    links = (tmp_path / "links").read_text().splitlines()
    for text, found in zip(texts.splitlines(), links, strict=True):
        targets = [int(link.partition("-")[2]) for link in found.split()]
        assert targets == list(range(len(targets)))
        assert len(targets) >= len(text.split())
    assert "name the same file" in refused(run(*words, "--output", "links"))
    assert "leave out --n_best" in refused(run(*words, "--n_best"))


def test_what_cannot_align_is_refused(make_model, vocabulary):
    model = make_model(words=(vocabulary.size, vocabulary.size))
    for given, said in (
        ([Ensemble([model, model]), 80], "give -m one"),
        ([model, 80, 2], "--alignment_layer is 2, and this model attends in 1 layers"),
    ):
        with pytest.raises(UserError, match=said):
            Aligner(*given)
