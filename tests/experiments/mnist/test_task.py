import json
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.data_sets.mnist import read_mnist
from experiments.mnist.task import EXPERIMENT, Classifiers
from experiments.trials.experiment import conduct
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from nmt.errors import UserError
from tests.experiments.trials.conftest import conduct_whole

SETTINGS = [
    Setting(f"batch-{size}", f"batches of {size}", size, updates=4, window=2, validate_every=2) for size in (8, 4)
]
SMALL = replace(EXPERIMENT, settings=SETTINGS, seeds=(1, 2), rounds=2)
ROWS = {row.name: row for row in EXPERIMENT.rows}
STEP_SIZES = 3


@pytest.fixture
def networks(folder):
    return Classifiers(read_mnist(str(folder), training=60), hidden=6)


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported_once(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    found = json.loads((tmp_path / "build" / "report" / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "differences", "step_sizes", "mean_share", "speed"]
    logs = {path: path.stat().st_mtime_ns for path in (tmp_path / "experiments" / "logs" / "mnist").glob("*.json")}
    assert len(logs) == 1 + len(SETTINGS) * len(ROWS) * (STEP_SIZES + len(SMALL.seeds))  # one has the times
    conduct(SMALL, lambda: networks, so_far=False, root=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in logs} == logs


def test_a_log_has_losses_validations_gains_and_shares(networks, tmp_path):
    log = train(Trial(ROWS["rmsnorm"], SETTINGS[1], 1, 0.01), networks, tmp_path)
    assert [each["update"] for each in log["train"]] == [2, 4]
    assert log["validations"][0].keys() == {"update", "nll", "error", "test_nll", "test_error"}
    assert log["gains"].keys() == {"hidden_1_norm", "hidden_2_norm"}
    assert log["mean_share"]["last"].keys() == {"hidden_1", "hidden_2"}
    json.dumps(log)


def test_without_logs_there_is_nothing_to_report(tmp_path):
    with pytest.raises(UserError, match="no training of the task mnist is done yet"):
        conduct(SMALL, pytest.fail, so_far=True, root=tmp_path)
