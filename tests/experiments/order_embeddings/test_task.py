import json
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.order_embeddings.data import read_corpus
from experiments.order_embeddings.section import STAND_IN
from experiments.order_embeddings.task import EXPERIMENT, Embeddings, reproduce
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from nmt.errors import UserError
from tests.experiments.trials.conftest import conduct_whole

SETTING = Setting("batch-8", "batches of 8", batch_size=8, updates=4, window=2, validate_every=2)
ROWS = {row.name: row for row in EXPERIMENT.rows}
SMALL = replace(EXPERIMENT, settings=[SETTING], rows=[ROWS["layernorm"], ROWS["rmsnorm"]], seeds=(1, 2), rounds=2)


@pytest.fixture
def networks(folder):
    return Embeddings(read_corpus(str(folder)), units=4, word_units=3)


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    report = tmp_path / "build" / "report"
    found = json.loads((report / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    times = "An update with RMSNorm takes less time than with LayerNorm"
    assert [claim["claim"] for claim in found["claims"]] == [times] * 2  # XLA and plain
    assert STAND_IN in (report / "report.md").read_text()


@pytest.mark.slow
def test_a_log_has_losses_validations_gains_and_shares(networks, tmp_path):
    log = train(Trial(ROWS["rmsnorm"], SETTING, 1, 0.01), networks, tmp_path)
    assert [each["update"] for each in log["train"]] == [2, 4]
    assert {"missed", "image_r10", "test_caption_r1"} <= log["validations"][0].keys()
    norms = {"input_gates", "input_proposal", "state_gates", "state_proposal"}
    assert log["gains"].keys() == {f"gru/cell/{name}_norm" for name in norms}
    assert log["mean_share"]["last"].keys() == norms
    json.dumps(log)


def test_the_folder_must_be_given():
    with pytest.raises(UserError, match="give the folder of the captions"):
        reproduce("", so_far=False)
