from types import SimpleNamespace

import pytest

from benchmarks.updates import Work
from experiments import time_split
from experiments.time_split import KINDS, measure

SECONDS = {8: 0.1, 16: 0.3}  # of an update, by the width of its batch
PRODUCTS = {8: 0.05, 16: 0.21}  # of it, in matrix products


@pytest.fixture
def made(monkeypatch):
    """The updates that are made, by kind and width, with those that are profiled; the last of them are disturbed."""
    calls = []

    def profile(call):
        kind, width = call()
        number = calls.count((kind, width)) - 1  # without the first, which is not profiled
        return SECONDS[width] * (3 if number == 3 else 1), {"matmul": PRODUCTS[width], "softmax": 0.1 * SECONDS[width]}

    def new_update(work, kind):
        return lambda batch: calls.append((kind, batch.target.shape[1])) or calls[-1], None

    monkeypatch.setattr(time_split, "new_update", new_update)
    monkeypatch.setattr(time_split, "profile", profile)
    return calls


@pytest.fixture
def measured(made):
    batches = [SimpleNamespace(target=SimpleNamespace(shape=(80, width))) for width in SECONDS]
    return measure(Work(batches, {}, None), rounds=3)


def test_shares_are_those_of_a_whole_round_without_what_disturbs_one(measured):
    assert list(measured["shares"]) == list(KINDS)
    for shares in measured["shares"].values():
        assert shares == pytest.approx({"matmul": (0.05 + 0.21) / (0.1 + 0.3), "softmax": 0.1})
    assert measured["widths"] == [8, 16]


def test_every_update_is_compiled_before_it_is_profiled(measured, made):
    assert all(made.count((kind, width)) == 1 + 3 for kind in KINDS for width in SECONDS)
