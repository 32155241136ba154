"""Folders of Marian models in the format of transformers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

DATA = Path(__file__).parents[2] / "data" / "marian"  # made by make.py there


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(DATA, tmp_path / "folder", ignore=shutil.ignore_patterns("*.py", "expected.json")))


def change_json(path, **changes):
    content = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


def arrays(change):
    def changed(folder):
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file({name: np.ascontiguousarray(array) for name, array in found.items()}, folder / "model.safetensors")

    return changed
