import json

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.cifar10 import rows
from experiments.cifar10.data import read_cifar10
from experiments.cifar10.model import SUMS
from experiments.cifar10.task import Scale, reproduce, train
from experiments.trials.trial import Setting, Trial, rows_of

SETTING = Setting("batch-6", "batches of 6", batch_size=6, updates=2, window=1, validate_every=1)
SCALE = Scale([SETTING], widths=(2, 3), seeds=(1, 2), rounds=2)


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(file, tmp_path):
    reproduce(str(file), so_far=False, scale=SCALE, root=tmp_path)
    found = json.loads((tmp_path / "build" / "report" / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    assert len(found["claims"]) == 7


def test_a_log_has_losses_validations_gains_and_shares(file, tmp_path):
    row = next(row for row in rows_of(rows) if row.name == "rmsnorm")
    log = train(Trial(row, SETTING, 1, 0.01), read_cifar10(str(file)), tmp_path, SCALE.widths)
    assert [each["update"] for each in log["train"]] == [1, 2]
    assert log["validations"][0].keys() == {"update", "nll", "error", "test_nll", "test_error"}
    assert set(log["gains"]) == {f"{name}_norm" for name in SUMS}
    assert log["mean_share"]["last"].keys() == set(SUMS)
    json.dumps(log)
