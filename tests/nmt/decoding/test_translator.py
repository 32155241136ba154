"""Strings to strings, here and in a process that has none of this project."""

import json
import os
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

from nmt.decoding.translator import Translator, save_translator
from nmt.errors import UserError
from nmt.text.batches import encode_pairs

LINES = ["a b c", "", "d", "x a d d b", "a b c"]
SERVE = """
import importlib.util, json, sys
import tensorflow as tf
import tensorflow_text
assert not importlib.util.find_spec("nmt") and not importlib.util.find_spec("rmsnorm_tf")
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
for lines in json.loads(sys.argv[2]):
    found = serve(sources=tf.constant(lines, tf.string))
    print(json.dumps([[t.decode() for t in found["translations"].numpy()], found["scores"].numpy().tolist()]))
"""


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
    """The model scores its own translation as the search did, divided by the length with its end."""
    model = make_random_model("layernorm", vocabulary)
    translator = Translator(vocabulary, vocabulary, model, beam_size=3, alpha=1.0, max_length=10)
    (beam,) = translator.n_best(["a b c"])
    for text, score in beam:
        batch = encode_pairs([(b"a b c", text.encode())], vocabulary, vocabulary)
        if "UNK" not in text and len(text.split()) < 10:
            cost = model.costs(*batch)[0] / batch.target.shape[1]
            np.testing.assert_allclose(score, cost, rtol=1e-4)


def test_no_lines(make_translator, vocabulary):
    assert make_translator(vocabulary).best([]) == []


def test_a_saved_model_serves_the_same_without_this_project(make_translator, vocabulary, tmp_path):
    translator = make_translator(vocabulary)
    save_translator(translator, tmp_path / "saved")
    batches = [LINES, ["b"], []]
    run = subprocess.run(
        [sys.executable, "-S", "-c", SERVE, str(tmp_path / "saved"), json.dumps(batches)],
        env={**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    for lines, served in zip(batches, map(json.loads, run.stdout.splitlines()), strict=True):
        expected = translator.n_best(lines)
        assert served[0] == [beam[0][0] for beam in expected]
        np.testing.assert_allclose(served[1], [beam[0][1] for beam in expected], rtol=1e-5)


def test_nothing_is_overwritten(make_translator, vocabulary, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="is there already"):
        save_translator(make_translator(vocabulary), tmp_path / "there")
