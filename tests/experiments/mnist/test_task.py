import json

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.data_sets.mnist import read_mnist
from experiments.mnist import rows
from experiments.mnist.task import Scale, reproduce, train
from experiments.trials.trial import Setting, Trial, rows_of
from nmt.errors import UserError

SETTINGS = [
    Setting(f"batch-{size}", f"batches of {size}", size, updates=4, window=2, validate_every=2) for size in (8, 4)
]
SCALE = Scale(SETTINGS, hidden=6, training=60, seeds=(1, 2), rounds=2)
ROWS, STEP_SIZES = 5, 3


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported_once(folder, tmp_path):
    reproduce(str(folder), so_far=False, scale=SCALE, root=tmp_path)
    found = json.loads((tmp_path / "build" / "report" / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    logs = {path: path.stat().st_mtime_ns for path in (tmp_path / "experiments" / "logs" / "mnist").glob("*.json")}
    assert len(logs) == 1 + len(SETTINGS) * ROWS * (STEP_SIZES + len(SCALE.seeds))  # one has the times
    reproduce(str(folder), so_far=False, scale=SCALE, root=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in logs} == logs


def test_a_log_has_losses_validations_gains_and_shares(folder, tmp_path):
    mnist = read_mnist(str(folder), SCALE.training)
    trials = {row.name: Trial(row, SETTINGS[1], 1, 0.01) for row in rows_of(rows)}
    log = train(trials["rmsnorm"], mnist, tmp_path, SCALE.hidden)
    assert [each["update"] for each in log["train"]] == [2, 4]
    assert log["validations"][0].keys() == {"update", "nll", "error", "test_nll", "test_error"}
    assert log["gains"].keys() == {"hidden_1_norm", "hidden_2_norm"}
    assert log["mean_share"]["last"].keys() == {"hidden_1", "hidden_2"}
    json.dumps(log)


def test_without_logs_there_is_nothing_to_report(tmp_path):
    with pytest.raises(UserError, match="no training of the task mnist is done yet"):
        reproduce("", so_far=True, scale=SCALE, root=tmp_path)
