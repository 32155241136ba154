import json

import pytest

from experiments.reporting.speed import PROCESSES
from experiments.translation import runs
from experiments.translation.runs import AGAIN, measure_seconds

BENCHMARK = "benchmarks/training.py"


def test_seconds_are_kept_with_their_commit(corpus, store, ran, times):
    assert store.read_times() == []
    for _ in range(2):
        measure_seconds(
            [kind for kind in times["updates"]["float32"] if kind != AGAIN], corpus, store
        )
    assert store.read_times() == [{**times, "commit": "0123456789ab"}] * PROCESSES
    assert [command[0] for command in ran] == [BENCHMARK] * PROCESSES
    assert json.loads((store.work / "options.json").read_text()) == corpus.training(store.work)


def test_all_kinds_of_the_copy_are_timed_in_turn_and_layernorm_again(corpus, store, ran):
    measure_seconds(["none", "mine"], corpus, store)
    command = " ".join(ran[0])
    config = store.work / "options.json"
    given = f"--baseline {store.baseline} --kinds none mine layernorm --config {config} --json"
    assert given in command


def test_a_new_kind_causes_all_kinds_to_be_timed_again(corpus, store, ran, times):
    kinds = [kind for kind in times["updates"]["float32"] if kind != AGAIN]
    measure_seconds(kinds, corpus, store)
    ran.clear()
    measure_seconds([*kinds, "mine"], corpus, store)
    assert [command[0] for command in ran] == [BENCHMARK] * PROCESSES


def test_times_of_one_process_are_read_and_completed(corpus, store, ran, times):
    kinds = [kind for kind in times["updates"]["float32"] if kind != AGAIN]
    store.write("times", times)  # as it was written before
    assert store.read_times() == [times]
    measure_seconds(kinds, corpus, store)
    assert len(ran) == PROCESSES - 1
    old = times["updates"]["float32"]
    del old[AGAIN]
    store.write("times", times)
    ran.clear()
    measure_seconds(kinds, corpus, store)
    assert len(ran) == PROCESSES


def test_an_interrupted_measurement_is_not_kept(corpus, store, ran, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "execute", end)
    with pytest.raises(KeyboardInterrupt):
        measure_seconds(["none"], corpus, store)
    assert store.read_times() == []
