import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.skip_thoughts.data import END
from experiments.skip_thoughts.model import Sizes
from experiments.skip_thoughts.section import STAND_IN
from experiments.skip_thoughts.task import EXPERIMENT, SkipThoughts, reproduce
from experiments.trials.fitting import train
from experiments.trials.trial import Setting, Trial
from nmt.errors import UserError
from tests.experiments.trials.conftest import conduct_whole

SETTING = Setting("batch-8", "batches of 8", batch_size=8, updates=4, window=2, validate_every=2)
ROWS = {row.name: row for row in EXPERIMENT.rows}
SMALL = replace(EXPERIMENT, settings=[SETTING], rows=[ROWS["layernorm"], ROWS["rmsnorm"]], seeds=(1, 2), rounds=2)


@pytest.fixture
def networks(corpus):
    return SkipThoughts(corpus, Sizes(units=3, word_units=4))


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported(networks, tmp_path):
    conduct_whole(SMALL, lambda: networks, tmp_path)
    report = tmp_path / "build" / "report"
    found = json.loads((report / "report.json").read_text())
    assert list(found["sections"]) == ["learning", "step_sizes", "mean_share", "speed"]
    assert found["claims"] == []  # there is no model without a norm, and no published time
    assert STAND_IN in (report / "report.md").read_text()


def test_a_batch_has_sentences_between_their_neighbours(networks, corpus):
    (sentences, neighbours), targets = networks.batch(np.array([0, 3]), SETTING)
    np.testing.assert_array_equal(neighbours, targets)
    middle = corpus.train.middles[3]
    np.testing.assert_array_equal(sentences[1], corpus.train.ids[middle])
    np.testing.assert_array_equal(neighbours[1], corpus.train.ids[[middle - 1, middle + 1]])
    assert ((targets == END).sum(-1) == 1).all()


@pytest.mark.slow
def test_a_log_has_losses_shares_and_gains(networks, tmp_path):
    trial = Trial(ROWS["rmsnorm"], SETTING, 1, 0.01)
    log = train(trial, networks, tmp_path)
    assert log["validations"][0].keys() == {"update", "nats"}
    assert len(log["gains"]) == 3 * 4
    assert log["mean_share"]["last"].keys() == {"input_gates", "input_proposal", "state_gates", "state_proposal"}


def test_the_folder_must_be_given():
    with pytest.raises(UserError, match="give a folder of novels in plain text"):
        reproduce("", so_far=False)
