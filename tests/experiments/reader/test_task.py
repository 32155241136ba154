import json
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.reader.data import read_corpus
from experiments.reader.model import Sizes
from experiments.reader.section import STAND_IN
from experiments.reader.task import EXPERIMENT, Readers, reproduce
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from nmt.errors import UserError
from tests.experiments.trials.conftest import conduct_whole

SETTING = Setting("batch-8", "batches of 8", batch_size=8, updates=4, window=2, validate_every=2)
ROWS = {row.name: row for row in EXPERIMENT.rows}
SMALL = replace(EXPERIMENT, settings=[SETTING], rows=[ROWS["layernorm"], ROWS["rmsnorm"]], seeds=(1, 2), rounds=2)


@pytest.fixture
def networks(novels):
    return Readers(read_corpus(str(novels)), Sizes(units=3, word_units=4))


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    report = tmp_path / "build" / "report"
    found = json.loads((report / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "baseline", "speed"]
    assert len(found["claims"]) == 2  # on times: XLA and plain
    assert STAND_IN in (report / "report.md").read_text()


@pytest.mark.slow
def test_a_log_has_losses_shares_gains_and_the_simple_answer(networks, tmp_path):
    log = train(Trial(ROWS["rmsnorm"], SETTING, 1, 0.01), networks, tmp_path)
    assert log["validations"][0].keys() == {"update", "nll", "error", "test_nll", "test_error"}
    assert len(log["gains"]) == 2 * 2 * 3  # two readers, two directions, three norms
    shares = {f"{reader} {what}" for reader in ("passage", "question") for what in ("input", "state", "carry")}
    assert log["mean_share"]["last"].keys() == shares
    assert all(0 <= error <= 100 for error in log["most_frequent_error"].values())
    json.dumps(log)


def test_the_folder_must_be_given():
    with pytest.raises(UserError, match="give a folder of novels"):
        reproduce("", so_far=False)
