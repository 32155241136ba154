import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")


from experiments.draw.model import Sizes
from experiments.draw.task import EXPERIMENT, Drawers, binarize
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from tests.experiments.trials.conftest import conduct_whole

SETTING = Setting("batch-8", "batches of 8", batch_size=8, updates=4, window=2, validate_every=2)
ROWS = {row.name: row for row in EXPERIMENT.rows}
SMALL = replace(EXPERIMENT, settings=[SETTING], rows=[ROWS["layernorm"], ROWS["rmsnorm"]], seeds=(1, 2), rounds=2)


@pytest.fixture
def networks(folder):
    return Drawers(binarize(str(folder), training=60), Sizes(units=4, latent=2, steps=2))


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    found = json.loads((tmp_path / "build" / "report" / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    assert found["claims"] == []  # there is no model without a norm, and no published time


def test_images_are_binarized_by_their_brightness_and_always_the_same(folder):
    found = binarize(str(folder), training=60)
    assert [len(part) for part in found] == [60, 20, 20]
    assert set(np.unique(found.train)) == {0.0, 1.0}
    bright = found.train[np.arange(60), np.arange(60) % 10]
    assert bright.min() == 1  # pixels of brightness 255
    np.testing.assert_array_equal(found.train, binarize(str(folder), training=60).train)


@pytest.mark.slow
def test_a_log_has_bounds_shares_and_gains(networks, tmp_path):
    trial = Trial(ROWS["rmsnorm"], SETTING, 1, 0.01)
    log = train(trial, networks, tmp_path)
    assert log["validations"][0].keys() == {"update", "bound", "test_bound"}
    assert log["gains"].keys() == {f"drawing/step/{lstm}/{lstm}_norm" for lstm in ("encoder", "decoder")}
    assert log["mean_share"]["last"].keys() == {"encoder", "decoder"}
