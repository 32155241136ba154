from types import SimpleNamespace

import pytest

from benchmarks.updates import Work
from experiments import time_split
from experiments.time_split import KINDS, measure

# Milliseconds of three rounds, by width of the batch and kind; the last round is disturbed.
TIMES = {
    8: {"none": [100, 102, 300], "layernorm": [120, 122, 330], "rmsnorm": [110, 112, 305]},
    16: {"none": [200, 202, 204], "layernorm": [260, 262, 274], "rmsnorm": [230, 232, 234]},
}


@pytest.fixture
def measured(monkeypatch):
    """What is measured when updates take these times, half of which is matrix products, and a tenth softmax."""
    batches = [SimpleNamespace(target=SimpleNamespace(shape=(80, width))) for width in TIMES]

    def seconds_of(calls, rounds):
        width = next(iter(calls.values()))()
        return {kind: [each / 1e3 for each in TIMES[width][kind][:rounds]] for kind in calls}

    monkeypatch.setattr(time_split, "new_update", lambda work, kind: (lambda batch: batch.target.shape[1], None))
    monkeypatch.setattr(time_split, "seconds_of", seconds_of)
    monkeypatch.setattr(time_split, "shares", lambda call: {"matmul": 0.5, "softmax": 0.1})
    return measure(Work(batches, {}, None, 12.0), rounds=3)


def test_norms_take_what_the_update_takes_longer(measured):
    norm = {kind: measured["kinds"][kind]["norm"] for kind in KINDS}
    assert norm == pytest.approx({"none": 0, "layernorm": (20 + 60) / 2e3, "rmsnorm": (10 + 30) / 2e3})


def test_the_parts_make_up_the_update(measured):
    for split in measured["kinds"].values():
        assert sum(split[part] for part in ("norm", "matmul", "softmax", "rest")) == pytest.approx(split["total"])
    total = measured["kinds"]["layernorm"]["total"]
    assert total == pytest.approx((122 + 262) / 2e3)
    assert measured["kinds"]["layernorm"]["matmul"] == pytest.approx(0.5 * total)
    assert measured["kinds"]["layernorm"]["softmax"] == pytest.approx(0.1 * total)


def test_quartiles_are_over_the_rounds(measured):
    # the differences of the rounds, averaged over the batches, are 40, 40 and 50 ms
    assert measured["norm_quartiles"]["layernorm"] == pytest.approx([0.040, 0.045])
    assert measured["widths"] == [8, 16]
