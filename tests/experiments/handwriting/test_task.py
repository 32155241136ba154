import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")


from experiments.data_sets.arrays import Parts
from experiments.handwriting.task import EXPERIMENT, Writers, reproduce
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from nmt.errors import UserError
from tests.experiments.trials.conftest import conduct_whole

SETTING = Setting("length-6", "6 points", batch_size=4, updates=4, window=2, validate_every=2, options={"length": 6})
ROWS = {row.name: row for row in EXPERIMENT.rows}
SMALL = replace(EXPERIMENT, settings=[SETTING], rows=[ROWS["layernorm"], ROWS["rmsnorm"]], seeds=(1, 2), rounds=2)


@pytest.fixture
def networks():
    generator = np.random.default_rng(0)
    return Writers(Parts(*(generator.normal(size=(count, 10, 3)).astype(np.float32) for count in (12, 3, 3))), units=4)


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    found = json.loads((tmp_path / "build" / "report" / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    assert found["claims"] == []  # there is no model without a norm, and no published time


def test_inputs_are_the_points_before_the_targets(networks):
    inputs, targets = networks.batch(np.array([3, 5]), SETTING)
    assert inputs.shape == targets.shape == (2, 6, 3)
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])
    assert not inputs[:, 0].any()


@pytest.mark.slow
def test_a_log_has_losses_shares_and_gains(networks, tmp_path):
    trial = Trial(ROWS["rmsnorm"], SETTING, 1, 0.01)
    log = train(trial, networks, tmp_path)
    assert log["validations"][0].keys() == {"update", "nll", "test_nll"}
    assert log["gains"].keys() == {
        f"{lstm}/cell/{what}_norm" for lstm in ("first", "second") for what in ("input", "state", "carry")
    }
    shares = {f"{lstm} {what}" for lstm in ("first", "second") for what in ("input", "state", "carry")}
    assert log["mean_share"]["last"].keys() == shares


def test_the_file_must_be_given():
    with pytest.raises(UserError, match="give the file with the lines of IAM-OnDB"):
        reproduce("", so_far=False)
