"""Models written by an earlier version load and give the results of that version.

Their files never change.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers operations of the SavedModel)

from nmt.normalization import KINDS
from tests.parameters import slow

MODELS = Path(__file__).parents[1] / "data" / "golden" / "models"
SOURCE = MODELS / "test.en"
TARGET = MODELS / "test.de"


NAMES = [
    name for kind in KINDS for name in (kind, f"transformer-{kind}") if (MODELS / name).exists()
]


@pytest.mark.parametrize("name", [*slow("none"), *(name for name in NAMES if name != "none")])
def test_an_old_model_gives_the_same_costs_and_translations(run, name, tmp_path):
    assert (
        run(
            "score",
            "-m",
            MODELS / name,
            "-s",
            SOURCE,
            "-t",
            TARGET,
            "-n",
            0,
            "-o",
            tmp_path / "costs",
        )[0]
        == 0
    )
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "costs"), np.loadtxt(MODELS / f"{name}.costs"), atol=2e-5
    )
    limit = json.loads((MODELS / name / "config.json").read_text())[
        "translation_maxlen"
    ]  # was the default limit
    options = ("-n", "--translation_maxlen", limit)
    assert (
        run("translate", "-m", MODELS / name, "-i", SOURCE, "-o", tmp_path / "out", *options)[0]
        == 0
    )
    assert (tmp_path / "out").read_text() == (MODELS / f"{name}.translated").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_old_training_resumes(run, tmp_path, name):
    shutil.copytree(MODELS, tmp_path, dirs_exist_ok=True)
    status, _, said = run(
        "train", "-m", name, "--config", f"{name}/config.json", "--finish_after", 301
    )
    assert status == 0, said
    assert "stopped after update 301: --finish_after 301" in said


def test_an_old_exported_model_serves_the_same_translations():
    serve = tf.saved_model.load(MODELS / "saved_model").signatures["serving_default"]
    found = serve(sources=tf.constant(SOURCE.read_bytes().splitlines()))
    wanted = (MODELS / "rmsnorm.translated").read_text().splitlines()
    assert [text.decode() for text in found["translations"].numpy()] == wanted
    np.testing.assert_allclose(
        found["scores"], np.loadtxt(MODELS / "saved_model.scores"), rtol=1e-5
    )
