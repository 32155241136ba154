"""Models that one backend saves load on the others: `make test-backends` runs these tests on each,
in turn.

The environment variable `BACKENDS_FOLDER` names the folder where the backends find each other's
models.
"""

import json
import os
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from packaging.version import Version

from tests.backends import BACKEND, to_array
from tests.cases import CASES

FOLDER = Path(os.environ.get("BACKENDS_FOLDER", "nowhere"))
pytestmark = pytest.mark.skipif(
    "BACKENDS_FOLDER" not in os.environ, reason="BACKENDS_FOLDER is not set"
)


def test_models_for_the_other_backends():
    (FOLDER / BACKEND).mkdir(parents=True, exist_ok=True)
    for case in CASES:
        model = case.model()
        x = case.input()
        model.save(FOLDER / BACKEND / f"{case.name}.keras")
        np.savez(FOLDER / BACKEND / f"{case.name}.npz", x=x, y=to_array(model(x)))


def is_newer(path):
    """Whether a newer Keras saved the model, whose config may name unknown arguments."""
    with zipfile.ZipFile(path) as file:
        return Version(json.loads(file.read("metadata.json"))["keras_version"]) > Version(
            keras.__version__
        )


def test_models_of_the_other_backends():
    others = [path for path in sorted(FOLDER.glob("*/*.keras")) if path.parent.name != BACKEND]
    others = [path for path in others if not is_newer(path)]
    if not others:
        pytest.skip("no other backend has saved a model with this version of Keras or an older one")
    for path in others:
        data = np.load(path.with_suffix(".npz"))
        y = to_array(keras.models.load_model(path)(data["x"]))
        np.testing.assert_allclose(
            y, data["y"], rtol=0, atol=2e-5 * np.max(np.abs(data["y"])), err_msg=str(path)
        )
