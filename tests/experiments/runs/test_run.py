from dataclasses import replace

from experiments.runs.run import (
    SEEDS,
    Condition,
    Run,
    best_step_sizes,
    grid_runs,
    seed_runs,
)
from tests.experiments.runs.conftest import CONDITIONS, SETTING


def test_a_log_belongs_to_its_setting_and_row():
    setting = replace(SETTING, options={"length": 5})
    condition = Condition("mine", "Mine", None, options={"partial": 0.5})
    assert Run(condition, setting, 1, 0.1).options == {
        **{"row": "mine", "partial": 0.5, "length": 5, "seed": 1, "step_size": 0.1},
        **{"batch_size": 4, "updates": 10, "window": 2, "validate_every": 4},
    }


def test_the_grid_is_the_same_for_every_row():
    runs = grid_runs(CONDITIONS, [SETTING], (0.1, 0.3))
    assert len({run.name for run in runs}) == len(runs) == 2 * len(CONDITIONS)
    for condition in CONDITIONS:
        assert [run.step_size for run in runs if run.condition == condition] == [0.1, 0.3]


def test_the_best_step_size_has_the_lowest_validation():
    grid = (0.1, 0.3, 0.9)
    runs = grid_runs(CONDITIONS[:1], [SETTING], grid)
    logs = {}
    for run, losses in zip(runs, [[0.9, 0.5], [0.8, 0.2, 0.7], [0.3]], strict=True):
        logs[run] = {"validations": [{"nll": loss} for loss in losses]}
    assert best_step_sizes(logs, "nll", grid) == {(CONDITIONS[0], SETTING): 0.3}
    other = Run(CONDITIONS[0], SETTING, seed=1, step_size=7.0)  # not of the grid
    logs[other] = {"validations": [{"nll": 0.0}]}
    assert best_step_sizes(logs, "nll", grid) == {(CONDITIONS[0], SETTING): 0.3}
    del logs[runs[0]]
    assert best_step_sizes(logs, "nll", grid) == {}


def test_runs_are_ordered_by_seed():
    runs = seed_runs({(condition, SETTING): 0.1 for condition in CONDITIONS})
    assert [run.name for run in runs[:3]] == [
        "layernorm-small-1",
        "rmsnorm-small-1",
        "layernorm-small-2",
    ]
    assert len(runs) == len(SEEDS) * len(CONDITIONS)
    assert len(SEEDS) >= 5
