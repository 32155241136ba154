"""Runs a part of the tests on JAX; `make test-backends` runs them all."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

PARTS = ["norm/test_values.py", "test_jax.py"]


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="is the tests of another backend themselves"
)
def test_a_part_of_the_tests_passes_on_jax():
    pytest.importorskip("jax")
    folder = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-W", "ignore", "-p", "no:cacheprovider"]
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_ENABLE_X64": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    found = subprocess.run(
        [*command, *(folder / part for part in PARTS)],
        env=environment,
        cwd=folder.parents[1],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-3000:]
    assert " passed" in found.stdout
