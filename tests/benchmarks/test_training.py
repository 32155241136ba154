"""The script, in processes of its own: it brings its own copy of the baseline."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Added to a copy of the baseline: a kind that it does not come with.
MINE = """
_BUILDERS["mine"] = _BUILDERS["layernorm"]
KINDS = tuple(_BUILDERS)
"""


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "nmt", tmp_path / "copy" / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "copy" / "nmt" / "normalization.py").open("a") as file:
        file.write(MINE)
    return str(tmp_path / "copy")


@pytest.fixture
def run(options, tmp_path):
    """Runs the script on the training of `options`."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(options))
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), "--config", str(config)]

    def run(*arguments):
        whole = [*command, "--batches", "1", "--rounds", "3", *arguments]
        return subprocess.run(whole, capture_output=True, text=True, cwd=tmp_path)

    return run


def test_a_copy_is_measured_with_the_kinds_it_has(run, copy, options, tmp_path):
    ended = run("--baseline", copy, "--kinds", "none", "mine", "--json", str(tmp_path / "times.json"))
    assert ended.returncode == 0, ended.stderr
    written = (tmp_path / "times.json").read_text()
    times = json.loads(written)
    assert {kind: len(each["rounds"]) for kind, each in times["updates"]["float32"].items()} == {"none": 3, "mine": 3}
    assert str(tmp_path) not in written
    sizes = {"batch_size": 2, "embedding_size": 4, "state_size": 3, "maxlen": 30}
    assert times["options"] == sizes  # neither files nor the kind


def test_a_kind_that_the_copy_has_not_is_refused(run, copy):
    ended = run("--baseline", copy, "--kinds", "none", "theirs")
    assert ended.returncode == 2
    assert "--layer_normalization_type is 'theirs'; it must be one of none, layernorm, mine" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_without_a_copy_is_refused(run, tmp_path):
    ended = run("--baseline", str(tmp_path))
    assert ended.returncode == 2
    assert "holds no nmt; give a folder that patches/apply.py was applied to" in ended.stderr
