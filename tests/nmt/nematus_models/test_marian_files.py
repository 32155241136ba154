"""`import-marian` reads Marian's own files: weights, options, vocabularies."""

import json

import numpy as np
import pytest
import tensorflow as tf

from nmt.system import load_system
from nmt.text.vocabulary import load_vocabulary
from tests.nmt.nematus_files import run
from tests.nmt.nematus_models.conftest import DATA, weights_of
from tests.nmt.nematus_models.marian_files import arrays_of, write_marian

TABLES = ("encoder/embedding/embeddings", "decoder/embedding/embeddings", "decoder/output_kernel")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return weights_of(DATA, tmp_path_factory.mktemp("expected") / "model")


@pytest.mark.parametrize("padding", [0, 1, 9])
def test_the_weights_are_those_of_transformers_but_for_the_padding(tmp_path, expected, padding):
    """In Marian, a translation begins with zeros, and no word of the softmax is the padding."""
    folder = write_marian(DATA, tmp_path / "marian", padding=padding)
    found, config = weights_of(folder, tmp_path / "model")
    weights, original = expected
    assert found.keys() == weights.keys()
    for name in set(weights) - {"state", TABLES[0], "decoder/output_bias"}:
        np.testing.assert_array_equal(found[name], weights[name])
    np.testing.assert_array_equal(found[TABLES[0]][:-1], weights[TABLES[0]][:-1])
    assert not found[TABLES[0]][-1].any()
    assert found["decoder/output_bias"][-1] == -100
    changed = {name: config[name] for name in config if config[name] != original[name]}
    del changed["dictionaries"]
    assert changed == {
        "transformer_positions": "tensor2tensor",
        "transformer_norm_epsilon": 1e-9,
        "transformer_alignment_layer": 2,
    }


@pytest.mark.parametrize(
    ("ties", "names"),
    [
        ({"tied_embeddings_src": "true"}, ("Wemb", "Wemb", "decoder_ff_logit_out_Wt")),
        ({"tied_embeddings": "true"}, ("encoder_Wemb", "decoder_Wemb", "decoder_Wemb")),
        ({}, ("encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_Wt")),
        ({}, ("encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_W")),
    ],
)
def test_tables_are_tied_as_marian_does(tmp_path, ties, names):
    arrays = arrays_of(DATA)
    table = arrays.pop("Wemb")
    expected = {}
    for i, name in enumerate(dict.fromkeys(names)):
        expected[name] = table + i
        arrays[name] = expected[name].T if name.endswith("out_W") else expected[name]
    folder = write_marian(DATA, tmp_path / "marian", arrays, tied_embeddings_all="false", **ties)
    found, config = weights_of(folder, tmp_path / "model")
    source, target, output = names
    assert config["tie_encoder_decoder_embeddings"] == (source == target)
    assert config["tie_decoder_embeddings"] == (output == target)
    for path, name in zip(TABLES, names, strict=True):
        if path in found:
            np.testing.assert_array_equal(found[path][:48], expected[name])


def test_words_of_the_vocabulary_are_texts(tmp_path):
    """Not truth values, numbers or nothing, as YAML has them, and any of them may be the end."""
    ids = json.loads((DATA / "vocab.json").read_text(encoding="utf-8"))
    others = dict(zip(("x", "l", "▁", "f"), ("no", "1_0", "null", "2.50"), strict=True))
    renamed = {others.get(piece, piece): (i + 5) % 48 for piece, i in ids.items() if i < 48}
    folder = write_marian(DATA, tmp_path / "marian", ids=renamed)
    found, _ = weights_of(folder, tmp_path / "model")
    words = load_vocabulary(tmp_path / "model" / "source.model").words
    assert words[:2] == ["</s>", "<unk>"]
    assert set(others.values()) < set(words)
    rows = arrays_of(DATA)["Wemb"][[renamed[word] for word in words]]
    np.testing.assert_array_equal(found[TABLES[0]][:48], rows)


def test_the_padding_counts_for_nothing(tmp_path):
    """Costs are those of a softmax over the words alone."""
    run("import-marian", write_marian(DATA, tmp_path / "marian"), "--to", tmp_path / "model")
    model = load_system(tmp_path / "model").model
    source = np.array([[3, 5, 0]])
    target = np.array([[28, 31, 0]])
    logits = model(source, np.ones([1, 3], np.float32), target)[0, :, :-1]
    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(target[0], logits)
    ones = np.ones([1, 3], np.float32)
    np.testing.assert_allclose(
        model.costs(source, ones, target, ones), [tf.reduce_sum(costs)], rtol=1e-6
    )


def test_users_learn_that_marian_never_chooses_the_unknown_word(tmp_path, capsys):
    run("import-marian", write_marian(DATA, tmp_path / "marian"), "--to", tmp_path / "model")
    assert "--suppress_unknown" in capsys.readouterr().err
    origin = json.loads((tmp_path / "model" / "origin.json").read_text())
    assert origin["folder"] == "marian"
    assert len(origin["sha256"]) == 64


@pytest.mark.parametrize(
    ("theirs", "name", "ours"),
    [
        ({"transformer_ffn_activation": "gelu"}, "transformer_activation", "gelu"),
        ({"transformer_guided_alignment_layer": 1}, "transformer_alignment_layer", 1),
    ],
)
def test_options_become_ours(tmp_path, theirs, name, ours):
    """Gelu is the exact one; the guided layer aligns."""
    folder = write_marian(DATA, tmp_path / "marian", **theirs)
    assert weights_of(folder, tmp_path / "model")[1][name] == ours
