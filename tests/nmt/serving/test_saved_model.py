"""Exported models without this project: in a fresh environment, and through TensorFlow's C API."""

import importlib.metadata
import itertools
import json
import os
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
from tensorflow_serving.apis import prediction_log_pb2

from nmt.serving.assets import WARMUP, read_warmup
from nmt.text.vocabulary import Vocabularies
from tests.nmt.serving.exports import (
    best,
    in_batches,
    make_signatures,
    models,
    save,
    strange_strings,
)
from tests.parameters import slow

SERVE = """
import importlib.util, json, sys
for module in ("nmt", "rmsnorm_tf", "sentencepiece", "sacrebleu"):
    assert not importlib.util.find_spec(module), module
import tensorflow as tf
import tensorflow_text
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
for line in sys.stdin:
    sources = [string.encode("latin-1") for string in json.loads(line)["inputs"]["sources"]]
    found = serve(sources=tf.constant(sources, tf.string))
    translations = [string.decode("latin-1") for string in found["translations"].numpy()]
    print(json.dumps({"translations": translations, "scores": found["scores"].numpy().tolist()}))
"""
OLDER = os.environ.get("TENSORFLOW_2_20_PYTHON")


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """The interpreter of a new virtual environment that has only tensorflow, tensorflow-text and
    their requirements."""
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
    found = set()
    todo = list(names)
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            needs = map(packaging.requirements.Requirement, importlib.metadata.requires(name) or [])
            todo += [
                need.name
                for need in needs
                if not need.marker or need.marker.evaluate({"extra": ""})
            ]
    return found


def served(command, requests, folder):
    """Runs a command that maps requests to results, one JSON value a line; returns the results.

    A request is a list of strings for `serving_default`, or a pair: the name of a signature and its
    inputs.
    """

    def line(request):
        name, inputs = (
            request if isinstance(request, tuple) else ("serving_default", {"sources": request})
        )
        texts = {}
        for each, strings in inputs.items():
            texts[each] = [string.decode("latin-1") for string in strings]
        return json.dumps({"signature_name": name, "inputs": texts})

    run = subprocess.run(
        [str(word) for word in command],
        input="".join(line(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/usr/bin"},
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def translations_in(result):
    return [string.encode("latin-1") for string in result["translations"]]


def with_python(fresh_python, saved_model):
    return [fresh_python, "-I", "-c", SERVE, saved_model]


def with_c(saved_model):
    """The command that serves through the C API to four callers. It can import no package."""
    operations = (
        Path(tensorflow_text.__file__).parent / "python" / "ops" / "_sentencepiece_tokenizer.so"
    )
    client = Path(__file__).parent / "c_api_client.py"
    signatures = {}
    for name, signature in meta_graph(saved_model).signature_def.items():
        signatures[name] = {
            "inputs": {each: tensor.name for each, tensor in signature.inputs.items()},
            "outputs": {each: tensor.name for each, tensor in signature.outputs.items()},
        }
    command = [
        sys.executable,
        "-I",
        "-S",
        client,
        Path(tf.__file__).parent,
        operations,
        saved_model,
    ]
    return [*command, json.dumps(signatures)]


def meta_graph(saved_model):
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    (graph,) = proto.meta_graphs
    return graph


@models()
@pytest.mark.parametrize("count", [300, 10_000])
def test_every_string_gets_its_own_translation_in_python_and_c(
    fresh_python, saved_model, signatures, tmp_path, count
):
    """Python and C, with another order and batch size each, give what the signature gives here."""
    strings = strange_strings(count)
    expected = {}
    for batch in in_batches(sorted(strings, key=len), 70):
        expected |= zip(batch, best(signatures, batch), strict=True)
    for command, order, size in (
        (with_python(fresh_python, saved_model), strings, 50),
        (with_c(saved_model), strings[::-1], 6),
    ):
        batches = [*in_batches(order, size), [], order[:20]]
        found = served(command, batches, tmp_path)
        for batch, result in zip(batches, found, strict=True):
            assert translations_in(result) == [expected[string] for string in batch]


@models("transformer")
@pytest.mark.parametrize("only", ["with_prefix", *slow(None)])
def test_every_signature_is_served_without_python(saved_model, signatures, tmp_path, only):
    strings = [text for text in strange_strings(12) if len(text) < 1000]
    requests = []
    for name in [only] if only else signatures.functions:
        function = signatures.functions[name]
        inputs = [spec.name for spec in function.input_signature]
        for texts in [*in_batches(strings, 5), []]:
            requests.append(
                (name, {each: (texts if i == 0 else texts[::-1]) for i, each in enumerate(inputs)})
            )
    results = served(with_c(saved_model), requests, tmp_path)
    for (name, inputs), result in zip(requests, results, strict=True):
        expected = signatures.functions[name](
            **{each: tf.constant(texts, tf.string) for each, texts in inputs.items()}
        )
        for key, values in expected.items():
            values = values.numpy().ravel()
            if values.dtype == object:
                assert [text.encode("latin-1") for text in result[key]] == values.tolist(), (
                    name,
                    key,
                )
            else:
                np.testing.assert_allclose(
                    result[key], values, rtol=1e-4, atol=1e-6, err_msg=f"{name} {key}"
                )


@models()
def test_loading_prints_nothing_and_what_was_loaded_can_be_saved(saved_model, run_python, tmp_path):
    script = """
import sys
import tensorflow as tf
import tensorflow_text
for path, copy in zip(sys.argv[1:], sys.argv[2:]):
    loaded = tf.saved_model.load(path)
    tf.saved_model.save(loaded, copy, signatures=loaded.signatures)
serve = loaded.signatures["serving_default"]
print(serve(sources=tf.constant(["Das Haus"]))["translations"].numpy()[0].decode())
"""
    run = run_python(
        script, saved_model, tmp_path / "copy", tmp_path / "copy of copy", PYTHONIOENCODING="utf-8"
    )
    assert run.returncode == 0, run.stderr
    assert not [
        line
        for line in run.stderr.splitlines()
        if "gradient" in line or line.startswith("WARNING:absl")
    ]
    assert run.stdout.count("\n") == 1


@models("transformer")
def test_the_warm_up_requests_can_be_read_and_played(saved_model, signatures):
    played = []
    for name, inputs in read_warmup(saved_model):
        played.append((name, len(inputs["sources"])))
        function = signatures.functions[name]
        assert inputs.keys() == {spec.name for spec in function.input_signature}
        if name == "with_prefix":  # as above, because the first call of each takes seconds
            assert function(**{key: tf.constant(value) for key, value in inputs.items()})
    assert played == list(itertools.product(signatures.functions, (1, 2)))


def test_warm_up_requests_of_other_kinds_are_left_out(tmp_path):
    """TensorFlow Serving also records requests to classify and others, which the service does
    not answer."""
    (tmp_path / WARMUP).parent.mkdir()
    with tf.io.TFRecordWriter(str(tmp_path / WARMUP)) as file:
        for kind in (
            {"classify_log": prediction_log_pb2.ClassifyLog()},
            {"predict_log": prediction_log_pb2.PredictLog()},
        ):
            file.write(prediction_log_pb2.PredictionLog(**kind).SerializeToString())
    assert list(read_warmup(tmp_path)) == [("serving_default", {})]


@pytest.mark.slow
@pytest.mark.skipif(
    not OLDER,
    reason="needs a Python with TensorFlow and tensorflow-text 2.20: TENSORFLOW_2_20_PYTHON",
)
@models()
def test_an_export_loads_under_tensorflow_2_20(saved_model, signatures, tmp_path):
    """TensorFlow Serving brings an older TensorFlow than the one that exports."""
    strings = strange_strings(300)
    script = f"import tensorflow\nassert tensorflow.__version__.startswith('2.20.')\n{SERVE}"
    batches = in_batches(strings, 50)
    found = served([OLDER, "-I", "-c", script, saved_model], batches, tmp_path)
    for batch, result in zip(batches, found, strict=True):
        assert translations_in(result) == best(signatures, batch)


@pytest.mark.slow
def test_dictionaries_and_scores_are_served(fresh_python, vocabulary, tmp_path):
    signatures = make_signatures(Vocabularies(vocabulary, vocabulary), "layernorm")
    save(signatures, tmp_path / "saved")
    batches = [[b"a b c", b"", b"d", b"x a d d b", b"a b c"], [b"b"], []]
    found = served(with_python(fresh_python, tmp_path / "saved"), batches, tmp_path)
    for batch, result in zip(batches, found, strict=True):
        expected = signatures.n_best(tf.constant(batch, tf.string))
        assert translations_in(result) == expected["translations"].numpy()[:, 0].tolist()
        np.testing.assert_allclose(result["scores"], expected["scores"].numpy()[:, 0], rtol=1e-5)
    assert any(text for text in found[0]["translations"])
    tokens = signatures.attention(tf.constant(["x a"]), tf.constant(["b"]))
    assert tokens["source_tokens"].numpy().tolist() == [[b"UNK", b"a", b"eos"]]


def assert_only_operations_of_tensorflow_and_the_tokenizer(saved_model):
    """No Python function, no other library's operation, no XLA function, no operation that
    writes files."""
    graph = meta_graph(saved_model).graph_def
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    operations = {node.op for node in nodes} - {function.signature.name for function in functions}
    assert len(nodes) > 100
    foreign = operations - set(dir(tf.raw_ops)) - {"SentencepieceIdToStringOp"}
    assert foreign == {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    assert not [name for name in operations if "PyFunc" in name or name in ("WriteFile", "PrintV2")]
    assert not [node.name for node in (*nodes, *functions) if node.attr["_XlaMustCompile"].b]


@models("transformer")
def test_a_saved_model_has_only_operations_of_tensorflow_and_the_tokenizer(saved_model):
    assert_only_operations_of_tensorflow_and_the_tokenizer(saved_model)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["rnn", "transformer"])
def test_the_other_kinds_of_normalization_save_the_same_operations(
    vocabularies, kind, architecture, tmp_path
):
    if kind == "layernorm":
        pytest.skip("is in the test above")
    save(make_signatures(vocabularies, kind, architecture), tmp_path / "saved")
    assert_only_operations_of_tensorflow_and_the_tokenizer(tmp_path / "saved")


@models()
@pytest.mark.parametrize(
    "lines", [[b"Ein Haus", b"a\xff", b""] * 30, []], ids=["two batches", "nothing"]
)
def test_the_example_serves_any_lines(saved_model, signatures, lines):
    command = [sys.executable, Path(__file__).parents[3] / "examples" / "serve.py", saved_model]
    run = subprocess.run(
        command, input=b"".join(line + b"\n" for line in lines), capture_output=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split(b"\n")[:-1] == best(signatures, lines)
