import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from experiments.trials.trial import (
    SEEDS,
    Trial,
    TrialRow,
    best_step_sizes,
    grid_trials,
    rows_of,
    seed_trials,
)
from nmt.errors import UserError
from tests.experiments.trials.conftest import ROWS, SETTING


@pytest.fixture
def package(monkeypatch):
    """A package of rows with the file `a`."""
    found = ModuleType("package_of_rows")
    found.__path__ = []
    monkeypatch.setattr("pkgutil.iter_modules", lambda path: [SimpleNamespace(name="a")])

    def give(own, added):
        found.ROWS, rows = (
            [TrialRow(name, name, None) for name in names] for names in (own, added)
        )
        monkeypatch.setitem(sys.modules, "package_of_rows.a", SimpleNamespace(ROWS=rows))
        return found

    return give


def test_added_rows_follow_those_of_the_paper(package):
    found = rows_of(package(["none", "rmsnorm"], ["mine"]))
    assert [row.name for row in found] == ["none", "rmsnorm", "mine"]


def test_row_names_are_unique(package):
    with pytest.raises(
        UserError, match="more than one row is named mine; give each a name of its own"
    ):
        rows_of(package(["mine"], ["mine"]))


def test_a_log_belongs_to_its_setting_and_row():
    setting = replace(SETTING, options={"length": 5})
    row = TrialRow("mine", "Mine", None, options={"partial": 0.5})
    assert Trial(row, setting, 1, 0.1).options == {
        **{"row": "mine", "partial": 0.5, "length": 5, "seed": 1, "step_size": 0.1},
        **{"batch_size": 4, "updates": 10, "window": 2, "validate_every": 4},
    }


def test_the_grid_is_the_same_for_every_row():
    trials = grid_trials(ROWS, [SETTING], (0.1, 0.3))
    assert len({trial.name for trial in trials}) == len(trials) == 2 * len(ROWS)
    for row in ROWS:
        assert [trial.step_size for trial in trials if trial.row == row] == [0.1, 0.3]


def test_the_best_step_size_has_the_lowest_validation():
    trials = grid_trials(ROWS[:1], [SETTING], grid := (0.1, 0.3, 0.9))
    losses = [[0.9, 0.5], [0.8, 0.2, 0.7], [0.3]]
    logs = {
        trial: {"validations": [{"nll": loss} for loss in found]}
        for trial, found in zip(trials, losses, strict=True)
    }
    assert best_step_sizes(logs, "nll", grid) == {(ROWS[0], SETTING): 0.3}
    logs[Trial(ROWS[0], SETTING, seed=1, step_size=7.0)] = {
        "validations": [{"nll": 0.0}]
    }  # not of the grid
    assert best_step_sizes(logs, "nll", grid) == {(ROWS[0], SETTING): 0.3}
    del logs[trials[0]]
    assert best_step_sizes(logs, "nll", grid) == {}


def test_trials_are_ordered_by_seed():
    trials = seed_trials({(row, SETTING): 0.1 for row in ROWS})
    assert [trial.name for trial in trials[:3]] == [
        "layernorm-small-1",
        "rmsnorm-small-1",
        "layernorm-small-2",
    ]
    assert len(trials) == len(SEEDS) * len(ROWS)
    assert len(SEEDS) >= 5
