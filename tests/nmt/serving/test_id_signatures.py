"""Exports that map token ids to token ids: the translations of the strings, without a tokenizer."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from nmt.decoding.options import DecodingOptions
from nmt.decoding.translator import Translator
from nmt.serving.signatures import IdSignatures
from nmt.text.batches import LONGEST
from tests.nmt.serving.exports import SOURCE, make_model, make_signatures, save

LINES = [*SOURCE, "", "Haus", *(" ".join(["Haus", "viel"] * i) for i in range(150))]
SERVE = """
import json, sys
import tensorflow as tf
translate = tf.saved_model.load(sys.argv[1]).signatures["translate_ids"]
found = translate(sources=tf.constant(json.load(open(sys.argv[2])), tf.int32))
absent = ("tensorflow_text", "nmt", "sentencepiece")
assert not [name for name in sys.modules if name.startswith(absent)]
print(json.dumps({name: value.numpy().tolist() for name, value in found.items()}))
"""


@pytest.fixture(scope="module")
def ids(vocabularies):
    """The signatures of ids for the model and the options of the fixture of the strings."""
    model = make_model(vocabularies, "layernorm", "transformer")
    translator = Translator(
        vocabularies, model, DecodingOptions(beam_size=2, translation_maxlen=10)
    )
    return IdSignatures(vocabularies[0].size, translator)


@pytest.fixture(scope="module")
def export(ids, tmp_path_factory):
    return save(ids, tmp_path_factory.mktemp("ids") / "model")


@pytest.mark.slow
def test_the_translations_are_those_of_the_strings_without_tensorflow_text(
    vocabularies, export, run_python, tmp_path
):
    """In a process that does not import it.

    There are more sentences than in a slice, and one that is too long.
    """
    source, target = vocabularies
    lines = [*LINES, "Haus " * (LONGEST + 1)]
    signatures = make_signatures(vocabularies, "layernorm", "transformer")
    expected = signatures.serve(tf.constant(lines))
    sources = source.encode(lines)
    (tmp_path / "sources").write_text(json.dumps(sources.to_tensor(0).numpy().tolist()))
    run = run_python(SERVE, export, tmp_path / "sources")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    words = tf.RaggedTensor.from_tensor(tf.constant(found["translations"]), padding=0)
    assert target.decode(words).numpy().tolist() == expected["translations"].numpy().tolist()
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-4, atol=1e-6)
    assert (
        found["source_cut"]
        == expected["source_cut"].numpy().tolist()
        == [False] * len(LINES) + [True]
    )
    assert found["translation_cut"] == expected["translation_cut"].numpy().tolist()


def test_a_sentence_ends_at_its_first_0(ids):
    one, other = (
        ids.translate_ids(tf.constant(rows))
        for rows in ([[3, 4, 0, 5], [0, 7, 7, 7]], [[3, 4], [0, 0]])
    )
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-5)
    assert not one["translations"].numpy()[1].any()
    assert one["scores"].numpy()[1] == 0


def test_only_a_sentence_longer_than_the_limit_is_cut(ids):
    rows = np.full([2, LONGEST + 1], 3, np.int32)
    rows[0, LONGEST] = 0
    assert ids.translate_ids(tf.constant(rows))["source_cut"].numpy().tolist() == [False, True]


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (2, 0)])
def test_nothing_gives_nothing(ids, shape):
    found = ids.translate_ids(tf.zeros(shape, tf.int32))
    assert found["translations"].shape == (shape[0], 0)
    assert found["scores"].numpy().tolist() == [0.0] * shape[0]


@pytest.mark.parametrize("wrong", [-1, 50])
def test_an_id_outside_of_the_vocabulary_is_refused(ids, wrong):
    with pytest.raises(tf.errors.InvalidArgumentError, match="give source ids from 0 to 49"):
        ids.translate_ids(tf.constant([[3, wrong]]))


def test_the_graph_has_operations_of_tensorflow_alone(export):
    (graph,) = saved_model_pb2.SavedModel.FromString(
        (export / "saved_model.pb").read_bytes()
    ).meta_graphs
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]
    operations = {node.op for node in nodes} - {function.signature.name for function in functions}
    assert len(nodes) > 100
    assert operations <= set(dir(tf.raw_ops))
    assert set(graph.signature_def) - {"__saved_model_init_op"} == {"translate_ids"}


def test_the_command_writes_the_export(run, trained, tmp_path):
    assert (
        run(
            "export",
            "-m",
            "model",
            "--to",
            "saved",
            "--format",
            "savedmodel_ids",
            "--min_length",
            2,
        )[0]
        == 0
    )
    translate = tf.saved_model.load(str(tmp_path / "saved")).signatures["translate_ids"]
    assert translate(sources=tf.constant([[2, 3, 4]]))["translations"].shape[1] >= 2
    card = json.loads((tmp_path / "saved" / "assets.extra" / "model.json").read_text())
    assert card["signatures"] == ["translate_ids"]
    assert card["search"]["min_length"] == 2
