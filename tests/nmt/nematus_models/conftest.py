"""Checkpoints of Nematus, and folders of Marian models in the format of transformers."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.nmt.nematus_files import read_arrays, read_options, run, write_checkpoint

DATA = Path(__file__).parents[2] / "data" / "marian"  # made.md says how


@pytest.fixture
def tiny(tmp_path):
    """Writes the checkpoint `tiny_none` with changed variables and options; `None` removes one."""

    def write(variables=None, options=None, name="model"):
        arrays = {
            k: v
            for k, v in {**read_arrays("tiny_none.step10"), **(variables or {})}.items()
            if v is not None
        }
        given = {**read_options("tiny_none"), **(options or {})}
        return write_checkpoint(
            tmp_path / name, arrays, {k: v for k, v in given.items() if v is not None}
        )

    return write


@pytest.fixture
def folder(tmp_path):
    return Path(
        shutil.copytree(
            DATA, tmp_path / "folder", ignore=shutil.ignore_patterns("*.md", "expected.json")
        )
    )


def weights_of(folder, to):
    """Imports a folder; returns the checkpoint and the configuration."""
    run("import-marian", folder, "--to", to)
    with np.load(to / "best.npz") as checkpoint:
        return dict(checkpoint), json.loads((to / "config.json").read_text())


def change_json(path, **changes):
    content = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    set_json(path, {name: value for name, value in content.items() if value is not None})


def set_json(path, content):
    path.write_text(json.dumps(content))


def arrays(change):
    def changed(folder):
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file(
            {name: np.ascontiguousarray(array) for name, array in found.items()},
            folder / "model.safetensors",
        )

    return changed


def assert_refused(folder, to, capsys, message):
    """The message is one sentence, and nothing is left."""
    before = set(to.parent.iterdir())
    with pytest.raises(SystemExit, match="2"):
        run("import-marian", folder, "--to", to)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("nmt: ")
    assert re.search(message, said), said
    assert set(to.parent.iterdir()) == before
