"""Strings to strings, here and in a process that has none of this project."""

import json
import os
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import tensorflow as tf

from nmt.data import encode_pairs
from nmt.errors import UserError
from nmt.export import Translator, save_translator
from nmt.vocab import load_vocabulary, train_sentencepiece

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
def make_translator(make_model):
    """Makes a translator with random weights, large enough that translations differ."""

    def make(vocabulary, kind="layernorm", target_vocabulary=None, beam_size=3, alpha=1.0):
        target_vocabulary = target_vocabulary or vocabulary
        model = make_model(kind, words=(vocabulary.size, target_vocabulary.size))
        rng = np.random.default_rng(1)
        for weight in model.weights:
            weight.assign(rng.normal(0.0, 1.0, size=weight.shape))
        bias = model.decoder.output_bias
        bias.assign(bias.numpy() - 3.0 * np.eye(target_vocabulary.size)[0])  # the end is less likely
        return Translator(vocabulary, target_vocabulary, model, beam_size=beam_size, alpha=alpha, max_length=10)

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


def test_scores_are_the_costs_of_the_translations(make_translator, vocabulary):
    """The model scores its own translation as the search did, divided by the length with its end."""
    translator = make_translator(vocabulary)
    (beam,) = translator.n_best(["a b c"])
    for text, score in beam:
        batch = encode_pairs([(b"a b c", text.encode())], vocabulary, vocabulary)
        if "UNK" not in text and len(text.split()) < 10:
            cost = translator._model.costs(*batch)[0] / batch.target.shape[1]
            np.testing.assert_allclose(score, cost, rtol=1e-4)


def test_no_lines(make_translator, vocabulary):
    assert make_translator(vocabulary).best([]) == []


@pytest.fixture(params=["dictionary", "sentencepiece"])
def vocabularies(request, tmp_path, write_lines, vocabulary):
    """A source and a target vocabulary; those of SentencePiece have nothing in common."""
    if request.param == "dictionary":
        return vocabulary, vocabulary
    for name, lines in (("source", LINES), ("target", ["eins zwei", "drei vier", "zwei drei"])):
        train_sentencepiece(write_lines(name, lines), tmp_path / f"{name}.model", 12)
    return tuple(load_vocabulary(tmp_path / f"{name}.model") for name in ("source", "target"))


def test_a_saved_model_serves_the_same_without_this_project(make_translator, vocabularies, tmp_path):
    source, target = vocabularies
    translator = make_translator(source, target_vocabulary=target)
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


def test_a_saved_model_holds_no_python_and_no_nested_compilation(make_translator, vocabulary, tmp_path):
    save_translator(make_translator(vocabulary), tmp_path / "saved")
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    assert len(nodes) > 100
    assert not [node.op for node in nodes if "PyFunc" in node.op]
    assert not [node.name for node in nodes if node.attr["_XlaMustCompile"].b]


def test_nothing_is_overwritten(make_translator, vocabulary, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="is there already"):
        save_translator(make_translator(vocabulary), tmp_path / "there")
