import numpy as np
import pytest

from experiments.reporting.speed import AGAIN, PROCESSES
from experiments.runs import experiment
from experiments.runs.experiment import Experiment, order, time_updates
from experiments.runs.store import LogStore, Restart
from tests.experiments.runs.conftest import EXPERIMENT, Signs


@pytest.mark.slow
def test_every_row_is_timed_with_and_without_xla_and_layernorm_twice():
    found = time_updates(EXPERIMENT, Signs())
    assert found["seconds"].keys() == {"small"}
    for seconds in found["seconds"]["small"].values():
        assert list(seconds) == ["layernorm", "rmsnorm", AGAIN]
        assert np.all(np.array(list(seconds.values())) > 0)
        assert all(len(each) == 2 for each in seconds.values())
    assert list(found["seconds"]["small"]) == ["XLA", "plain"]


@pytest.mark.parametrize("setting, kind", [("small", "layernorm"), ("another", "rmsnorm")])
def test_a_row_or_a_setting_that_no_process_has_timed_is_timed_with_all_others(
    setting, kind, store, monkeypatch, tmp_path
):
    def times(*kinds, setting="small"):
        return {"seconds": {setting: {"XLA": {kind: [1.0] for kind in kinds}}}}

    monkeypatch.setattr(LogStore, "make_all", lambda *_: {})
    monkeypatch.setattr(experiment, "time_updates", lambda *_: times("layernorm", "rmsnorm", AGAIN))
    monkeypatch.setattr(Experiment, "report", lambda *_: True)
    store.write_times([times("layernorm", kind, AGAIN, setting=setting)] * PROCESSES)
    for count in range(1, PROCESSES + 1):
        with pytest.raises(Restart):
            EXPERIMENT.reproduce("", so_far=False, root=tmp_path)
        assert store.read_times() == [times("layernorm", "rmsnorm", AGAIN)] * count
    monkeypatch.setattr(experiment, "summary_of", lambda _: "")
    EXPERIMENT.reproduce("", so_far=False, root=tmp_path)  # once more, without a restart


def test_every_epoch_has_all_examples_in_its_own_order():
    epochs = order(1, 0, 30, 10).reshape(3, 10)
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert list(order(1, 7, 16, 10)) == list(epochs.flatten()[7:23])
    assert list(order(2, 0, 10, 10)) != list(epochs[0])
