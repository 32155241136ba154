import pytest
from matplotlib.figure import Figure

from experiments.reporting.speed import AGAIN
from experiments.runs.run import GRID_SEED, Run
from experiments.runs.sections import (
    share_section,
    step_sizes_section,
    times_section,
)
from tests.experiments.runs.conftest import CONDITIONS, SETTING


def log(*losses, share=0.25):
    shares = {when: {"hidden": share} for when in ("first", "last")}
    return {"validations": [{"nll": loss} for loss in losses], "mean_share": shares}


@pytest.fixture
def logs():
    grid = {Run(CONDITIONS[0], SETTING, GRID_SEED, size): log(0.9, size) for size in (0.1, 0.3)}
    return grid | {
        Run(CONDITIONS[0], SETTING, seed, 0.1): log(0.5, share=seed / 4) for seed in (1, 3)
    }


def axes_of(section):
    figure = Figure()
    section.plot(figure)
    return figure.axes


def test_the_grid_has_the_best_validation_of_every_step_size(logs):
    made = step_sizes_section(logs, "nll", "loss")
    assert made.columns == ["", "0.1", "0.3"]
    assert made.rows == [["LayerNorm, small batches", "0.1000", "0.3000"]]
    assert step_sizes_section({}, "nll", "loss") is None


def test_the_share_has_its_mean_before_and_after(logs):
    made = share_section(logs)
    assert made.columns == ["", "seeds", "before", "after", "norms, at the end"]
    assert made.rows == [["LayerNorm", "2", "50.0%", "50.0%", "50.0% to 50.0%"]]
    assert share_section({}) is None


def test_times_are_over_layernorms_round_by_round():
    seconds = {"layernorm": [1.0, 2.0, 4.0], "rmsnorm": [0.5, 1.0, 2.0], AGAIN: [1.0, 2.0, 4.0]}
    times = {"seconds": {"small": {"XLA": seconds, "plain": seconds}}, "cores": 2, "commit": "0123"}
    logs = {Run(condition, SETTING, 1, 0.1): {} for condition in CONDITIONS}
    made = times_section([times], logs, {"layernorm": 4.0, "rmsnorm": 3.0})
    assert made.columns[1:3] == ["small batches, XLA: ms", "small batches, XLA: ratio"]
    assert made.rows[1] == ["RMSNorm", *["1000.0", "0.50 [0.50, 0.50]"] * 2, "0.75"]
    assert len(axes_of(made)) == 2
    assert times_section([], logs, {}) is None
