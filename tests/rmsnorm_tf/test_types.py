"""Pyright reads code behind every call of the package, and what it finds there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

USER = """
import keras
import rmsnorm_tf

rmsnorm_tf.set_fused(False)
layer = rmsnorm_tf.RMSNormalization()
layer.scale.assign([1.0])
report = rmsnorm_tf.fold_layer_norm(keras.Sequential())
reveal_type(report)
reveal_type(report.entries[0].reason)
report.missing
"""


@pytest.fixture(scope="module")
def pyright():
    """Returns a function that gives what pyright says of a file."""
    python = os.environ.get("PYRIGHT_PYTHON")
    if not python:
        pytest.skip("PYRIGHT_PYTHON names no Python with basedpyright; `make test-types` does")

    def run(path):
        settings = {"typeCheckingMode": "basic", "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
        (path.parent / "pyrightconfig.json").write_text(json.dumps(settings))
        command = [python, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
        done = subprocess.run([*command, path], capture_output=True, text=True, cwd=path.parent)
        return json.loads(done.stdout)["generalDiagnostics"]

    return run


def test_code_of_users_is_read_to_its_end(pyright, tmp_path):
    """Behind a call that never returned, pyright would see neither the types nor the error."""
    path = tmp_path / "user.py"
    path.write_text(USER)
    found = pyright(path)
    types = [each["message"] for each in found if each["severity"] == "information"]
    assert [message.rpartition("is ")[2] for message in types] == ['"ConversionReport"', '"str"']
    errors = [each["rule"] for each in found if each["severity"] == "error"]
    assert errors == ["reportAttributeAccessIssue"]
