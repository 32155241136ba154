"""The model and the SavedModel in `tests/data/golden` load and give the same results for ever.

The code of 0.1.0 wrote them, from a SentencePiece vocabulary of 40 units without normalization.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers operations of the SavedModel)

MODELS = Path(__file__).parents[1] / "data" / "golden" / "models"
MODEL = MODELS / "layernorm"
SOURCE = MODELS / "test.en"
TARGET = MODELS / "test.de"


def test_the_model_gives_the_same_costs_and_translations(run, compiled):
    status, costs, _ = run("score", "-m", MODEL, "-s", SOURCE, "-t", TARGET, "-n", 0)
    assert status == 0
    expected = np.loadtxt(MODELS / "layernorm.costs")
    np.testing.assert_allclose(np.array(costs.split(), float), expected, atol=2e-5)
    status, texts, _ = run("translate", "-m", MODEL, "-i", SOURCE, "-n")
    assert (status, texts) == (0, (MODELS / "layernorm.translated").read_text())


@pytest.mark.slow
def test_the_training_resumes(run, compiled, tmp_path):
    shutil.copytree(MODELS, tmp_path, dirs_exist_ok=True)
    config = ("--config", "layernorm/config.json")
    status, _, said = run("train", "-m", "layernorm", *config, "--finish_after", 301)
    assert (status, "stopped after update 301: " in said) == (0, True)


def test_the_saved_model_serves_the_same_translations(tmp_path):
    shutil.unpack_archive(MODELS / "saved_model.zip", tmp_path)
    serve = tf.saved_model.load(tmp_path).signatures["serving_default"]
    found = serve(sources=tf.constant(SOURCE.read_bytes().splitlines()))
    texts = [text.decode() for text in found["translations"].numpy()]
    assert texts == (MODELS / "layernorm.translated").read_text().splitlines()
    scores = np.loadtxt(MODELS / "saved_model.scores")
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-5)
