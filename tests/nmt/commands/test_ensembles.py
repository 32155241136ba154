"""Several models after `-m`: translate, score and export."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.nmt.conftest import LINES
from tests.nmt.outcomes import refused


@pytest.mark.slow
def test_an_ensemble_translates_scores_and_is_exported(run, train, tmp_path):
    assert train()[0] == 0
    assert (
        train(
            "-m",
            "other",
            "--seed",
            2,
            "--learning_rate",
            0.1,
            "--layer_normalization_type",
            "layernorm",
        )[0]
        == 0
    )
    costs = []
    for models in (["model"], ["other"], ["model", "other"]):
        status, output, _ = run("score", "-m", *models, "-s", "dev.en", "-t", "dev.de", "-n", 0)
        assert status == 0
        costs.append([float(line) for line in output.splitlines()])
    np.testing.assert_allclose(costs[2], np.add(*costs[:2]), rtol=1e-5)
    assert run("translate", "-m", "model", "other", "-i", "dev.en", "-o", "out")[0] == 0
    assert run("export", "-m", "model", "other", "--to", "saved")[0] == 0
    serve = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    served = serve(sources=tf.constant(LINES))["translations"].numpy()
    assert [line.decode() for line in served] == (tmp_path / "out").read_text().splitlines()
    card = json.loads((tmp_path / "saved" / "assets.extra" / "model.json").read_text())
    assert (card["architecture"], card["normalization"]) == ("bigrams", ["none", "layernorm"])
    assert [model["validation"]["update"] for model in card["models"]] == [2, 2]


@pytest.mark.slow
def test_models_of_an_ensemble_need_the_same_vocabularies(run, train, dictionary):
    assert train()[0] == 0
    assert train("-m", "other", "--dictionaries", dictionary, dictionary)[0] == 0
    assert "model and other have different" in refused(
        run("translate", "-m", "model", "other", "-i", "dev.en")
    )
