from dataclasses import replace

import pytest

from experiments.runs.run import Condition
from experiments.runs.store import LogStore, Restart
from nmt.errors import UserError
from tests.experiments.runs.conftest import SETTING


def test_a_log_has_options_values_and_provenance(store, run):
    assert store.read(run) is None
    store.keep(run, {"seconds": 1.5})
    log = store.read(run)
    assert store.read(replace(run, step_size=0.1 * 0.1)) == log  # rounded otherwise
    assert log["seconds"] == 1.5
    assert (log["options"]["row"], log["options"]["seed"], log["options"]["batch_size"]) == (
        "rmsnorm",
        1,
        4,
    )
    assert log.keys() == {"options", "seconds", "commit", "versions", "cores"}


WIDE = {"condition": Condition("rmsnorm", "RMSNorm", None, options={"wide": True})}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"setting": replace(SETTING, updates=20)}, "updates was 10 and is now 20"),
        ({}, WIDE, "wide was None and is now True"),
        (WIDE, {}, "wide was True and is now None"),
    ],
)
def test_a_log_with_other_options_is_refused(store, run, before, after, said):
    store.keep(replace(run, **before), {})
    with pytest.raises(UserError, match=f"rmsnorm-small-1.json: {said}"):
        store.read(replace(run, **after))


def test_runs_are_made_once(store, run):
    runs = [run, replace(run, seed=2)]
    made = []

    def make(run):
        made.append(run.name)
        return {"seed": run.seed}

    for _ in range(2):
        assert store.make_all(runs, make) == {}
        assert [log["seed"] for log in store.read_all(runs).values()] == [1, 2]
    assert made == ["rmsnorm-small-1", "rmsnorm-small-2"]


def test_others_are_made_when_one_fails(store, run):
    def make(each):
        if each == run:
            raise UserError("because")
        return {}

    other = replace(run, seed=2)
    assert store.make_all([run, other], make) == {"rmsnorm-small-1": "because"}
    assert list(store.read_all([run, other])) == [other]


def test_how_much_is_trained_is_said_before(store, run, capsys):
    store.make_all([run, replace(run, seed=2)], lambda *_: {}, minutes=15)
    store.make_all([run, replace(run, seed=3)], lambda *_: {})
    said = capsys.readouterr().err
    assert "2 networks, about 0.5 hours" in said and "1 network; how long" in said


def test_nothing_is_made_if_a_log_has_other_options(store, run):
    store.keep(run, {})
    changed = replace(run, setting=replace(SETTING, updates=20))
    made = []
    with pytest.raises(UserError, match="updates was 10 and is now 20"):
        store.make_all([replace(run, seed=2), changed], lambda each: made.append(each) or {})
    assert not made


def test_trainings_that_leave_much_memory_behind_go_on_in_a_new_process(run, monkeypatch, tmp_path):
    left = [100]
    monkeypatch.setattr("experiments.runs.store.memory", lambda: sum(left))
    store = LogStore("small", tmp_path)
    store.most_memory = 50
    with pytest.raises(Restart):
        store.make_all([run, replace(run, seed=2)], lambda *_: left.append(51) or {})
    assert left == [100, 51] and store.read(run)
