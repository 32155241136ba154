"""Exported models without this project: in a fresh environment, and through TensorFlow's C API."""

import importlib.metadata
import json
import random
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import packaging.requirements
import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.model import rnnsearch, transformer_layers
from nmt.model.rnnsearch import RNNSearch
from nmt.model.transformer import Transformer
from nmt.serving.saved_model import save_translator
from nmt.text.batches import LONGEST
from nmt.text.vocabulary import load_vocabulary, train_sentencepiece

SOURCE = ["Größe, so viel wie möglich!", "Das ist ein Haus.", "Ein Haus ist das?", "viel Haus, 42 Wege", "שלום 世界"]
TARGET = ["".join(chr(0x430 + (i * i + j) % 32) for j in range(i + 3)) + " дом жук щи" for i in range(20)]
SERVE = """
import importlib.util, json, sys
for module in ("nmt", "rmsnorm_tf", "sentencepiece", "sacrebleu"):
    assert not importlib.util.find_spec(module), module
import tensorflow as tf
import tensorflow_text
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
for line in sys.stdin:
    found = serve(sources=tf.constant([string.encode("latin-1") for string in json.loads(line)], tf.string))
    translations = [string.decode("latin-1") for string in found["translations"].numpy()]
    print(json.dumps({"translations": translations, "scores": found["scores"].numpy().tolist()}))
"""


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    """SentencePiece models of two alphabets."""
    folder = tmp_path_factory.mktemp("vocabularies")
    vocabularies = []
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        train_sentencepiece(folder / name, folder / f"{name}.model", 50)
        vocabularies.append(load_vocabulary(folder / f"{name}.model"))
    return vocabularies


def make_rnn(kind, *words):
    return RNNSearch(*words, embedding_size=8, state_size=8, normalization=kind, rates=rnnsearch.Rates())


def make_transformer(kind, *words):
    sizes = transformer_layers.Sizes(8, 12, 2, kind, "pre", transformer_layers.Rates())
    return Transformer(*words, depths=(2, 2), sizes=sizes)


ARCHITECTURES = {"rnn": make_rnn, "transformer": make_transformer}


def make_translator(vocabularies, kind, architecture="rnn"):
    """Makes a translator with random weights, large enough that translations differ."""
    model = ARCHITECTURES[architecture](kind, *(vocabulary.size for vocabulary in vocabularies))
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(0.0, 1.0, size=weight.shape))
    return Translator(*vocabularies, model, beam_size=2, alpha=1.0, max_length=10)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def translator(vocabularies, request):
    return make_translator(vocabularies, "layernorm", request.param)


@pytest.fixture(scope="module")
def saved_model(translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    save_translator(translator, path)
    return path


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """The interpreter of a new virtual environment that has only tensorflow, tensorflow-text and their requirements."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for name in required("tensorflow", "tensorflow-text"):
        for file in importlib.metadata.files(name):
            top = Path(file).parts[0]
            if top not in ("..", "__pycache__") and not (packages / top).exists():
                (packages / top).symlink_to(Path(file.locate()).parents[len(file.parts) - 1] / top)
    return home / "bin" / "python"


def required(*names):
    """Returns the names of these distributions and of all their requirements on this machine."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            needs = map(packaging.requirements.Requirement, importlib.metadata.requires(name) or [])
            todo += [need.name for need in needs if not need.marker or need.marker.evaluate({"extra": ""})]
    return found


def served(command, batches, folder):
    """Runs a command that maps batches of strings to results, one JSON value a line; returns the results."""
    text = "".join(json.dumps([string.decode("latin-1") for string in batch]) + "\n" for batch in batches)
    run = subprocess.run(
        [str(word) for word in command],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/usr/bin"},
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def translations_in(result):
    return [string.encode("latin-1") for string in result["translations"]]


def strange_strings(count, seed=1):
    """Draws strings of all kinds, some of them twice."""
    draw = random.Random(seed)
    letters = [
        "abcdefgh Größe,!",
        "👍🏽👩‍👩‍👧 ",
        "שלום\u200f\u202e ",
        "\0\r\n\t\x7f\u2028",
        "日本語ﷺｱ",
        " ",
        "".join(SOURCE),
    ]

    def one():
        kind = draw.random()
        if kind < 0.1:
            return draw.randbytes(draw.randrange(40))  # rarely UTF-8
        if kind < 0.15:
            return b""
        if kind < 0.16:
            return "".join(draw.choices(draw.choice(letters), k=LONGEST)).encode()
        return "".join(draw.choices(draw.choice(letters), k=draw.randrange(40))).encode()

    strings = [one() for _ in range(count * 9 // 10)]
    strings += [*draw.choices(strings, k=count - len(strings) - 2), b"a" * 100_000, "ß ".encode() * 50_000]
    return draw.sample(strings, len(strings))


def in_batches(strings, size):
    return [strings[start : start + size] for start in range(0, len(strings), size)]


def best(translator, strings):
    return [text.encode() for text in translator.best(strings)]


def with_python(fresh_python, saved_model):
    return [fresh_python, "-I", "-c", SERVE, saved_model]


def with_c(saved_model):
    """The command that serves through the C API. It can import no package."""
    operations = Path(tensorflow_text.__file__).parent / "python" / "ops" / "_sentencepiece_tokenizer.so"
    client = Path(__file__).parent / "c_api_client.py"
    signature = meta_graph(saved_model).signature_def["serving_default"]
    tensors = signature.inputs["sources"].name, signature.outputs["translations"].name
    return [sys.executable, "-I", "-S", client, Path(tf.__file__).parent, operations, saved_model, *tensors]


def meta_graph(saved_model):
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    (graph,) = proto.meta_graphs
    return graph


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_string_gets_its_own_translation_in_python_and_c(fresh_python, saved_model, translator, tmp_path, count):
    """Python and C, with another order and batch size each, give what the translator gives here."""
    strings = strange_strings(count)
    expected = {}
    for batch in in_batches(sorted(strings, key=len), 70):
        expected |= zip(batch, best(translator, batch), strict=True)
    for command, order, size in (
        (with_python(fresh_python, saved_model), strings, 50),
        (with_c(saved_model), strings[::-1], 64),
    ):
        batches = [*in_batches(order, size), []]
        found = served(command, batches, tmp_path)
        for batch, result in zip(batches, found, strict=True):
            assert translations_in(result) == [expected[string] for string in batch]


def test_dictionaries_and_scores_are_served(fresh_python, vocabulary, tmp_path):
    translator = make_translator([vocabulary, vocabulary], "layernorm")
    save_translator(translator, tmp_path / "saved")
    batches = [[b"a b c", b"", b"d", b"x a d d b", b"a b c"], [b"b"], []]
    found = served(with_python(fresh_python, tmp_path / "saved"), batches, tmp_path)
    for batch, result in zip(batches, found, strict=True):
        expected = [beam[0] for beam in translator.n_best(batch)]
        assert translations_in(result) == [text.encode() for text, _ in expected]
        np.testing.assert_allclose(result["scores"], [score for _, score in expected], rtol=1e-5)
    assert any(text for text in found[0]["translations"])


def test_a_sentence_alone_is_translated_as_in_any_batch(translator):
    """The words are the same. Costs differ by rounding, because batches sum in another order."""
    strings = strange_strings(100)
    together = translator.n_best(strings)
    for string, beam in zip(strings, together, strict=True):
        ((text, cost), *_) = translator.n_best([string])[0]
        assert text == beam[0][0]
        np.testing.assert_allclose(cost, beam[0][1], rtol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_saved_model_has_only_operations_of_tensorflow_and_the_tokenizer(vocabularies, kind, architecture, tmp_path):
    """No Python function, no other library's operation, no XLA function, no operation that writes files."""
    save_translator(make_translator(vocabularies, kind, architecture), tmp_path / "saved")
    graph = meta_graph(tmp_path / "saved").graph_def
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    operations = {node.op for node in nodes} - {function.signature.name for function in functions}
    assert len(nodes) > 100
    foreign = operations - set(dir(tf.raw_ops))
    assert foreign == {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    assert not [name for name in operations if "PyFunc" in name or name in ("WriteFile", "PrintV2")]
    assert not [node.name for node in (*nodes, *functions) if node.attr["_XlaMustCompile"].b]


@pytest.mark.parametrize("lines", [[b"Ein Haus", b"a\xff", b""] * 30, []], ids=["two batches", "nothing"])
def test_the_example_serves_any_lines(saved_model, translator, lines):
    command = [sys.executable, Path(__file__).parents[3] / "examples" / "serve.py", saved_model]
    run = subprocess.run(command, input=b"".join(line + b"\n" for line in lines), capture_output=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.decode().split("\n")[:-1] == translator.best(lines)


def test_an_existing_path_is_not_overwritten(translator, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="there exists already; remove it or give another path"):
        save_translator(translator, tmp_path / "there")
