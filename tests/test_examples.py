"""Errors of the scripts in examples/, which tests/nmt/serving runs on a model."""

import subprocess
import sys
from pathlib import Path

SERVE = Path(__file__).parents[1] / "examples" / "serve.py"


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path):
    run = subprocess.run(
        [sys.executable, SERVE, tmp_path / "absent"], input="", capture_output=True, text=True
    )
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert f"{tmp_path / 'absent'} has no saved_model.pb" in run.stderr
