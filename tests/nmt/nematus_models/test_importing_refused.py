"""`import-nematus`: which checkpoints, options and dictionaries it refuses, and what it says."""

import json
import os

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.nematus_models.importing import read_checkpoint_config
from nmt.normalization import KINDS
from tests.nmt.nematus_files import DATA, run, write_options

BIAS = "decoder/base/gru0/gates_bias"


def refused(capsys, *arguments):
    """Runs an import that fails and returns its message."""
    with pytest.raises(SystemExit) as stop:
        run("import-nematus", *arguments)
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("factors", 2),
        ("rnn_lexical_model", True),
        ("softmax_mixture_size", 3),
    ],
)
def test_unsupported_options_are_refused(tmp_path, option, value):
    with pytest.raises(UserError, match=f"{option} is {value!r}; only .* is supported"):
        read_checkpoint_config(write_options(tmp_path / "options.json", **{option: value}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dec_depth": 2}, "before v0.5"),
        ({"rnn_dec_depth": 2}, "comes from Nematus before v0.5"),
        (
            {"rnn_enc_transition_depth": 2, "theano_compat": True},
            "theano_compat with transitions in the encoder or",
        ),
    ],
)
def test_deep_models_that_cannot_be_equalled_are_refused_with_the_reason(tmp_path, options, said):
    old = {"dec_depth": None, "enc_recurrence_transition_depth": None}
    with pytest.raises(UserError, match=said):
        read_checkpoint_config(write_options(tmp_path / "options.json", **{**old, **options}))


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            {"model_type": "hybrid"},
            "model_type is 'hybrid'; only rnn and transformer are supported",
        ),
        ({"source_vocab_sizes": [50, 50]}, "source_vocab_sizes"),
        ({"source_vocab_sizes": []}, "source_vocab_sizes"),
        ({"dictionaries": [1, 2]}, "give --dictionaries SOURCE TARGET"),
    ],
)
def test_options_of_the_wrong_type_are_refused(tmp_path, option, said):
    path = write_options(tmp_path / "options.json", **option)
    dictionaries = [DATA / f"tiny.vocab.{side}.json" for side in ("en", "de")]
    given = None if "dictionaries" in option else dictionaries
    with pytest.raises(UserError, match=said):
        read_checkpoint_config(path, given)


@pytest.mark.parametrize(
    "kind", [name for name in ("rmsnorm", "prmsnorm", "a new one") if name not in KINDS]
)
def test_a_kind_missing_from_this_tree_names_the_patch_command(tmp_path, kind):
    path = write_options(
        tmp_path / "options.json", use_layer_norm=True, layer_normalization_type=kind
    )
    with pytest.raises(UserError, match=r"patches/apply\.py apply"):
        read_checkpoint_config(path, [DATA / f"tiny.vocab.{side}.json" for side in ("en", "de")])


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({BIAS: None}, f"{BIAS} [32] is missing"),
        ({BIAS: np.zeros(31, np.float32)}, f"{BIAS} has shape [31], but the model needs [32]"),
        (
            {"decoder/high/gates_bias": np.zeros(3, np.float32)},
            "decoder/high/gates_bias [3] is left over",
        ),
        (
            {"decoder/embedding/embeddings": np.zeros([9, 8], np.float32)},
            "embeddings has shape [9, 8], but",
        ),
    ],
    ids=["missing", "another shape", "left over", "another vocabulary"],
)
def test_wrong_variables_are_named_and_nothing_is_written(tmp_path, tiny, capsys, variables, said):
    assert said in refused(capsys, tiny(variables), "--to", tmp_path / "new" / "imported")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"]
)
def test_weights_that_cannot_be_read_to_their_end_are_refused(tmp_path, tiny, capsys, make):
    checkpoint = tiny()
    file = checkpoint.with_name(f"{checkpoint.name}.data-00000-of-00001")
    file.unlink()
    make(file)
    assert f"{file} is not a regular file" in refused(
        capsys, checkpoint, "--to", tmp_path / "imported"
    )
    assert not (tmp_path / "imported").exists()


def test_missing_or_damaged_files_are_refused(tmp_path, tiny, capsys):
    checkpoint = tiny()
    to = tmp_path / "imported"
    assert "give the name without extension" in refused(capsys, f"{checkpoint}.index", "--to", to)
    missing = tmp_path / "missing.json"
    said = refused(capsys, checkpoint, "--to", to, "--dictionaries", missing, missing)
    assert f"but not so: {missing}; give --dictionaries" in said
    assert "exists already" in refused(capsys, checkpoint, "--to", tmp_path)
    (tmp_path / "model.json").unlink()
    assert f"there is no {tmp_path / 'model.json'}" in refused(capsys, checkpoint, "--to", to)
    data = tmp_path / "model.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    assert "is damaged or not a checkpoint" in refused(capsys, checkpoint, "--to", to)
    assert not to.exists()


@pytest.mark.parametrize(
    "change", [{"learning_schedule": "cosine"}, {"model_type": ["rnn"]}, {"dictionaries": 5}]
)
def test_malformed_options_are_refused_in_one_line(tiny, tmp_path, capsys, change):
    checkpoint = tiny()
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    said = refused(capsys, checkpoint, "--to", tmp_path / "imported")
    assert "Traceback" not in said
    assert said.count("\n") == 1
