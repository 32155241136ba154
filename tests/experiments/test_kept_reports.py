"""The kept reports of the Keras tasks are those of their kept logs."""

import shutil
from importlib import import_module

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.overview import RESULTS
from experiments.trials.experiment import conduct

TASKS = sorted(path.name for path in RESULTS.iterdir() if (RESULTS.parent / path.name / "task.py").exists())


def test_there_are_some():
    assert TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_kept_report_follows_from_its_logs(task, tmp_path):
    shutil.copytree(RESULTS / task / "logs", tmp_path / "experiments" / "logs" / task)
    conduct(import_module(f"experiments.{task}.task").EXPERIMENT, pytest.fail, so_far=True, root=tmp_path)
    for name in ("report.md", "report.json"):
        assert (tmp_path / "build" / "report" / name).read_text() == (RESULTS / task / name).read_text()
