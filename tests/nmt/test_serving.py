"""Exported models where nothing of this project is: in a fresh environment, and through TensorFlow's C API."""

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

from nmt.decoding.translator import Translator, save_translator
from nmt.model.rnnsearch import Rates, RNNSearch
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
    print(json.dumps([string.decode("latin-1") for string in found["translations"].numpy()]))
"""


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    """Those of two alphabets."""
    folder = tmp_path_factory.mktemp("vocabularies")
    vocabularies = []
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        train_sentencepiece(folder / name, folder / f"{name}.model", 50)
        vocabularies.append(load_vocabulary(folder / f"{name}.model"))
    return vocabularies


def make_translator(vocabularies, kind):
    """Makes a translator with random weights, large enough that translations differ."""
    model = RNNSearch(50, 50, embedding_size=8, state_size=8, normalization=kind, rates=Rates())
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(0.0, 1.0, size=weight.shape))
    return Translator(*vocabularies, model, beam_size=2, alpha=1.0, max_length=10)


@pytest.fixture(scope="module")
def translator(vocabularies):
    return make_translator(vocabularies, "layernorm")


@pytest.fixture(scope="module")
def saved_model(translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    save_translator(translator, path)
    return path


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """The interpreter of a new virtual environment that has tensorflow, tensorflow-text and what these require."""
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
    """Returns the names of distributions and of all that they require here."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            needs = map(packaging.requirements.Requirement, importlib.metadata.requires(name) or [])
            todo += [need.name for need in needs if not need.marker or need.marker.evaluate({"extra": ""})]
    return found


def served(command, batches, folder):
    """Runs a command that maps batches to translations, as JSON and Latin-1."""
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
    return [[string.encode("latin-1") for string in json.loads(line)] for line in run.stdout.splitlines()]


def strange_strings(count, seed=1):
    """Draws strings that a stranger might send, some of them twice."""
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
    """The command that serves through the C API; it finds no package at all."""
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
def test_served_elsewhere_nothing_is_lost_or_crossed(fresh_python, saved_model, translator, tmp_path, count):
    """By Python and by C, in two orders and batch sizes, all as the translator here gives them."""
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
        assert [len(batch) for batch in found] == [len(batch) for batch in batches]
        for batch, translations in zip(batches, found, strict=True):
            assert translations == [expected[string] for string in batch]


def test_a_sentence_alone_is_translated_as_in_any_batch(translator):
    """The same words; costs are equal up to the rounding of sums in another order."""
    strings = strange_strings(100)
    together = translator.n_best(strings)
    for string, beam in zip(strings, together, strict=True):
        ((text, cost), *_) = translator.n_best([string])[0]
        assert text == beam[0][0]
        np.testing.assert_allclose(cost, beam[0][1], rtol=1e-5)


def test_what_is_saved_is_nothing_but_tensorflow_and_the_tokenizer(vocabularies, kind, tmp_path):
    """No Python function, no operation of anybody else, no function compiled apart, nothing that writes files."""
    save_translator(make_translator(vocabularies, kind), tmp_path / "saved")
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
    command = [sys.executable, Path(__file__).parents[2] / "examples" / "serve.py", saved_model]
    run = subprocess.run(command, input=b"".join(line + b"\n" for line in lines), capture_output=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.decode().split("\n")[:-1] == translator.best(lines)
