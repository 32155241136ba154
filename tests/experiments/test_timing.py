import json

import pytest

from experiments import timing
from experiments.timing import SPLIT, TIMES, measure, read

BENCHMARK = "benchmarks/training.py"


def test_what_is_measured_is_kept_with_its_commit(corpus, place, ran, times):
    assert read(TIMES, place) is None
    for _ in range(2):
        measure(list(times["updates"]["float32"]), corpus, place)
    assert read(TIMES, place) == {**times, "commit": "0123456789ab"}
    assert read(SPLIT, place)["commit"] == "0123456789ab"
    assert [command[0] for command in ran] == [BENCHMARK, "-m"]
    assert json.loads((place.work / "options.json").read_text()) == corpus.training(place.work)


def test_all_kinds_of_the_copy_are_timed_in_turn(corpus, place, ran):
    measure(["none", "mine"], corpus, place)
    command = " ".join(ran[0])
    assert f"--baseline {place.baseline} --kinds none mine --config {place.work / 'options.json'} --json" in command


def test_a_new_kind_has_all_timed_anew(corpus, place, ran, times):
    kinds = list(times["updates"]["float32"])
    measure(kinds, corpus, place)
    ran.clear()
    measure([*kinds, "mine"], corpus, place)
    assert [command[0] for command in ran] == [BENCHMARK]


def test_nothing_is_kept_of_a_measurement_that_is_ended(corpus, place, ran, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(timing, "execute", end)
    with pytest.raises(KeyboardInterrupt):
        measure(["none"], corpus, place)
    assert read(TIMES, place) is None
