from dataclasses import replace

import pytest

from experiments.trials.machine import Restart
from experiments.trials.trial import TrialRow
from nmt.errors import UserError
from tests.experiments.trials.conftest import SETTING


def test_a_log_has_options_values_and_provenance(book, trial):
    assert book.read(trial) is None
    book.keep(trial, {"seconds": 1.5})
    log = book.read(trial)
    assert log["seconds"] == 1.5
    assert (log["options"]["row"], log["options"]["seed"], log["options"]["batch_size"]) == (
        "rmsnorm",
        1,
        4,
    )
    assert log.keys() == {"options", "seconds", "commit", "versions", "cores"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"setting": replace(SETTING, updates=20)}, "updates was 10 and is now 20"),
        (
            {"row": TrialRow("rmsnorm", "RMSNorm", None, options={"wide": True})},
            "wide was None and is now True",
        ),
    ],
)
def test_a_log_with_other_options_is_refused(book, trial, changed, said):
    book.keep(trial, {})
    with pytest.raises(
        UserError, match=f"rmsnorm-small-1.json: {said}; move .*small away, or restore the earlier"
    ):
        book.read(replace(trial, **changed))


def test_trials_are_made_once(book, trial):
    trials = [trial, replace(trial, seed=2)]
    made = []

    def make(trial, folder):
        made.append(trial.name)
        folder.mkdir(parents=True)
        return {"seed": trial.seed}

    for _ in range(2):
        assert book.make_all(trials, make) == {}
        logs = book.read_all(trials)
        assert [log["seed"] for log in logs.values()] == [1, 2]
    assert made == ["rmsnorm-small-1", "rmsnorm-small-2"]
    assert not any(book.folder(trial).exists() for trial in trials)


def test_an_interrupted_trial_leaves_no_log_and_keeps_its_folder(book, trial):
    def make(trial, folder):
        folder.mkdir(parents=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        book.make_all([trial], make)
    assert book.read_all([trial]) == {}
    assert book.folder(trial).exists()


def test_others_are_made_when_one_fails(book, trial):
    def make(each, folder):
        if each == trial:
            raise UserError("because")
        return {}

    other = replace(trial, seed=2)
    assert book.make_all([trial, other], make) == {"rmsnorm-small-1": "because"}
    assert list(book.read_all([trial, other])) == [other]


def test_how_much_is_trained_is_said_before(book, trial, capsys):
    book.make_all([trial, replace(trial, seed=2)], lambda *_: {}, minutes=15)
    book.make_all([trial, replace(trial, seed=3)], lambda *_: {})
    said = capsys.readouterr().err
    assert "2 networks, about 0.5 hours" in said and "1 network; how long" in said


def test_nothing_is_made_if_a_log_has_other_options(book, trial):
    book.keep(trial, {})
    changed = replace(trial, setting=replace(SETTING, updates=20))
    made = []
    with pytest.raises(UserError, match="updates was 10 and is now 20"):
        book.make_all(
            [replace(trial, seed=2), changed], lambda each, folder: made.append(each) or {}
        )
    assert not made


def test_trainings_that_leave_much_memory_behind_go_on_in_a_new_process(book, trial, monkeypatch):
    book.most_memory = 50
    left = [100]
    monkeypatch.setattr("experiments.trials.book.memory", lambda: sum(left))
    with pytest.raises(Restart):
        book.make_all([trial, replace(trial, seed=2)], lambda *_: left.append(51) or {})
    assert left == [100, 51] and book.read(trial)
