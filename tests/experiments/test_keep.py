"""The kept reports are what their logs and remarks give."""

import json
import shutil

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.keep import keep
from experiments.overview import RESULTS

TASKS = sorted(path.name for path in RESULTS.iterdir() if (RESULTS.parent / path.name / "task.py").exists())


def test_there_are_some():
    assert TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_kept_report_follows_from_its_logs(task, tmp_path):
    shutil.copytree(RESULTS / task / "logs", tmp_path / task / "logs")
    shutil.copy(RESULTS / task / "remarks.md", tmp_path / task)
    keep(task, tmp_path)
    names = {path.name for path in (RESULTS / task).iterdir()}
    assert {path.name for path in (tmp_path / task).iterdir()} == names
    for name in names & {"report.md", "report.json"}:
        found, kept = ((folder / task / name).read_text("utf-8") for folder in (tmp_path, RESULTS))
        assert found == kept
    assert json.loads((tmp_path / task / "report.json").read_text())["claims"]
