"""The scripts that time training and translating.

They run in processes of their own: one imports another nmt, one runs as `translate` does.
"""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden" / "models"
DTYPE = "float32"

# A kind that only the copy has.
MINE = """
_BUILDERS["mine"] = _BUILDERS["none"]
KINDS = tuple(_BUILDERS)
"""


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(
        ROOT / "nmt", tmp_path / "copy" / "nmt", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (tmp_path / "copy" / "nmt" / "normalization.py").open("a") as file:
        file.write(MINE)
    return str(tmp_path / "copy")


@pytest.fixture
def command(options, tmp_path):
    """Returns the command that measures the training of `options`."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(options))
    script = str(ROOT / "benchmarks" / "training.py")
    return [
        sys.executable,
        script,
        "--config",
        str(config),
        "--batches",
        "1",
        "--rounds",
        "3",
        "--dtypes",
        DTYPE,
    ]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_a_copy_is_measured_with_its_own_kinds(command, copy, options, tmp_path):
    ended = run(
        *command,
        "--baseline",
        copy,
        "--kinds",
        "none",
        "mine",
        "mine",
        "--json",
        str(tmp_path / "times.json"),
    )
    assert ended.returncode == 0, ended.stderr
    written = (tmp_path / "times.json").read_text()
    times = json.loads(written)
    rounds = {kind: len(each["rounds"]) for kind, each in times["updates"][DTYPE].items()}
    assert rounds == {"none": 3, "mine": 3, "mine 2": 3}
    assert str(tmp_path) not in written
    # Neither files nor the kind.
    assert times["options"] == {
        "batch_size": 2,
        "embedding_size": 4,
        "state_size": 3,
        "maxlen": 30,
    }


@pytest.mark.slow
def test_a_kind_that_the_copy_lacks_is_refused(command, copy):
    ended = run(*command, "--baseline", copy, "--kinds", "none", "theirs")
    assert ended.returncode == 2
    assert "--layer_normalization_type is 'theirs'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_without_a_copy_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    training = importlib.import_module("training")
    with pytest.raises(SystemExit) as ended:
        training.parse(["--baseline", str(tmp_path)])
    assert ended.value.code == 2
    assert f"{tmp_path} has no nmt" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_and_its_export_translate_alike(tmp_path):
    shutil.unpack_archive(GOLDEN / "saved_model.zip", tmp_path / "export")
    ended = run(
        sys.executable,
        ROOT / "benchmarks" / "decoding.py",
        "--model",
        GOLDEN / "layernorm",
        "--input",
        GOLDEN / "test.en",
        "--saved_model",
        tmp_path / "export",
        "--rounds",
        "1",
        "--json",
        tmp_path / "found.json",
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads((tmp_path / "found.json").read_text())["figures"]["translations"]
    lines = (GOLDEN / "test.en").read_bytes().count(b"\n")
    assert found == {"ours": {"equal": lines}, "SavedModel": {"equal": lines}}
