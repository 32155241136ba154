"""`import-nematus`: which checkpoints, options and dictionaries it refuses, and what it says."""

import json
import os
import re

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
    ("options", "said"),
    [
        ({"factors": 2}, "factors is 2; only 1 is supported"),
        ({"rnn_lexical_model": True}, "rnn_lexical_model is True; only False is supported"),
        ({"softmax_mixture_size": 3}, "softmax_mixture_size is 3; only 1 is supported"),
        ({"dec_depth": 2}, "before v0.5"),
        ({"rnn_dec_depth": 2, "dec_depth": None}, "comes from Nematus before v0.5"),
        (
            {
                "rnn_enc_transition_depth": 2,
                "enc_recurrence_transition_depth": None,
                "theano_compat": True,
            },
            "theano_compat with transitions in the encoder or",
        ),
        (
            {"model_type": "hybrid"},
            "model_type is 'hybrid'; it must be one of rnn, transformer",
        ),
        ({"source_vocab_sizes": [50, 50]}, "source_vocab_sizes"),
        ({"source_vocab_sizes": []}, "source_vocab_sizes"),
        *(
            ({"use_layer_norm": True, "layer_normalization_type": kind}, "patches/apply.py apply")
            for kind in ("rmsnorm", "prmsnorm", "a new one")
            if kind not in KINDS
        ),
    ],
)
def test_options_that_cannot_be_imported_are_refused_with_the_reason(tmp_path, options, said):
    path = write_options(tmp_path / "options.json", **options)
    with pytest.raises(UserError, match=re.escape(said)):
        read_checkpoint_config(path, [DATA / f"tiny.vocab.{side}.json" for side in ("en", "de")])


@pytest.mark.parametrize("dictionaries", [[1, 2], 5])
def test_dictionaries_that_are_no_paths_are_refused(tmp_path, dictionaries):
    path = write_options(tmp_path / "options.json", dictionaries=dictionaries)
    with pytest.raises(UserError, match="give --dictionaries SOURCE TARGET"):
        read_checkpoint_config(path)


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


@pytest.mark.parametrize("change", [{"learning_schedule": "cosine"}, {"model_type": ["rnn"]}])
def test_malformed_options_are_refused_in_one_line(tiny, tmp_path, capsys, change):
    checkpoint = tiny()
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    said = refused(capsys, checkpoint, "--to", tmp_path / "imported")
    assert "Traceback" not in said
    assert said.count("\n") == 1
