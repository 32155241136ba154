"""`python -m nmt train --reload`: training goes on from another model."""

import json
import shutil

import numpy as np
import pytest

from tests.nmt.outcomes import refused, weights


@pytest.mark.slow
def test_a_training_begins_with_the_weights_of_another(train, dictionary, tmp_path):
    assert train("--learning_rate", 0.1)[0] == 0
    assert (
        train("--reload", "model", "-m", "tuned", "--learning_rate", 1e-4, "--batch_size", 3)[0]
        == 0
    )
    moved = np.abs(
        weights(tmp_path / "tuned/last.npz")["table"]
        - weights(tmp_path / "model/best.npz")["table"]
    )
    assert 0 < moved.max() < 3e-4  # two updates
    again = train("--reload", "nowhere", "-m", "tuned", "--learning_rate", 1e-4, "--batch_size", 3)
    assert (again[0], "--reload has an effect only" in again[2]) == (0, True)
    assert "no checkpoint nowhere/best.npz" in refused(train("--reload", "nowhere", "-m", "other"))
    words = ("--dictionaries", dictionary, dictionary)
    assert "another source vocabulary, another" in refused(
        train("--reload", "model", "-m", "other", *words)
    )
    for name in ("extra.npz", "mine.npz"):  # not those of `--keep`
        (tmp_path / "tuned" / "kept").mkdir(exist_ok=True)
        shutil.copy(tmp_path / "tuned" / "best.npz", tmp_path / "tuned" / "kept" / name)
    assert (
        train(
            "-m",
            "tuned",
            "--learning_rate",
            1e-4,
            "--batch_size",
            3,
            "--keep",
            1,
            "--finish_after",
            8,
        )[0]
        == 0
    )


@pytest.mark.slow
def test_a_reloaded_model_is_validated_before_its_first_update(train, tmp_path):
    """That counts for patience, and is repeated by no resumed training.

    A run that is never better says so.
    """
    assert train("--learning_rate", 0.3, "--finish_after", 40, "--valid_freq", 40)[0] == 0
    worse = (
        "--reload",
        "model",
        "-m",
        "worse",
        "--learning_rate",
        1e3,
        "--valid_metric",
        "loss",
        "--finish_after",
        50,
        "--exponential_smoothing",
        0.1,
    )
    status, _, said = train(*worse, "--valid_freq", 1, "--patience", 2)
    assert status == 0, said
    (last,) = [line for line in said.splitlines() if line.startswith("stopped")]
    assert "stopped after update 2: " in last
    assert "after update 0; worse/best.npz " in last
    validations = json.loads((tmp_path / "worse" / "progress.json").read_text())["validations"]
    assert [(each["update"], each["epoch"], each["counts"]) for each in validations] == [
        *((0, 0.0, True), (1, 1.0, True), (2, 2.0, True))
    ]
    best, model = (weights(tmp_path / name / "best.npz")["table"] for name in ("worse", "model"))
    np.testing.assert_array_equal(best, model)
    assert (tmp_path / "worse" / "valid" / "0.txt").exists()
    assert "update 0  valid loss" in said
    status, _, said = train(*worse, "--valid_freq", 1, "--patience", 3)
    assert "stopped after update 3: " in said
    assert "update 0  valid loss" not in said


def test_a_training_begins_with_the_progress_of_another(train, tmp_path):
    """And with its next batch: an epoch has three."""
    options = ("--batch_size", 2, "--learning_rate", 0.1)
    assert train(*options)[0] == 0
    progress = (*options, "--reload", "model", "--reload_training_progress", "-m", "other")
    assert "2 updates, and --finish_after 2" in refused(train(*progress))
    assert not (tmp_path / "other").exists()
    assert train(*progress, "--finish_after", 4)[0] == 0
    assert train(*options, "--finish_after", 4)[0] == 0
    other, model = (weights(tmp_path / name / "last.npz")["table"] for name in ("other", "model"))
    np.testing.assert_array_equal(other, model)
    validated = json.loads((tmp_path / "other" / "progress.json").read_text())["validations"]
    assert [each["update"] for each in validated] == [2, 4]
    assert "_progress needs --reload DIR" in refused(train(*options, *progress[6:]))


@pytest.mark.slow
def test_a_training_begins_only_with_weights_of_its_own_architecture(train):
    """With another activation, all weights are there, but the model would be another one."""
    assert train(model_type="rnn")[0] == 0
    options = ("--output_hidden_activation", "relu")
    status, _, said = train("--reload", "model", "-m", "other", *options, model_type="rnn")
    assert (status, said.count("\n")) == (2, 1)
    assert "another output_hidden_activation" in said
