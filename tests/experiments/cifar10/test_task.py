import json
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.cifar10.data import read_cifar10
from experiments.cifar10.model import SUMS
from experiments.cifar10.task import EXPERIMENT, Classifiers
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from tests.experiments.trials.conftest import conduct_whole

SETTING = Setting("batch-6", "batches of 6", batch_size=6, updates=2, window=1, validate_every=1)
ROWS = {row.name: row for row in EXPERIMENT.rows}
SMALL = replace(EXPERIMENT, settings=[SETTING], rows=[ROWS["layernorm"], ROWS["rmsnorm"]], seeds=(1, 2), rounds=2)


@pytest.fixture
def networks(file):
    return Classifiers(read_cifar10(str(file)), widths=(2, 3))


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    found = json.loads((tmp_path / "build" / "report" / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    times = "An update with RMSNorm takes less time than with LayerNorm"
    assert [claim["claim"] for claim in found["claims"]] == [times] * 2  # XLA and plain


def test_a_log_has_losses_validations_gains_and_shares(networks, tmp_path):
    log = train(Trial(ROWS["rmsnorm"], SETTING, 1, 0.01), networks, tmp_path)
    assert [each["update"] for each in log["train"]] == [1, 2]
    assert log["validations"][0].keys() == {"update", "nll", "error", "test_nll", "test_error"}
    assert set(log["gains"]) == {f"{name}_norm" for name in SUMS}
    assert log["mean_share"]["last"].keys() == set(SUMS)
    json.dumps(log)


def test_every_published_value_is_of_a_row():
    assert EXPERIMENT.learning.published.keys() <= ROWS.keys()
