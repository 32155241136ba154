import sys
from unittest.mock import Mock

import pytest

from experiments import __main__ as command
from nmt.errors import UserError


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """Two tasks in a temporary folder. Each prints its arguments."""
    for name in ("one", "two"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        source = f"def reproduce(data, so_far):\n    print('{name}', data or 'usual', so_far)\n"
        (tmp_path / "experiments" / name / "task.py").write_text(source)
    (tmp_path / "experiments" / "reporting").mkdir()
    monkeypatch.setattr(command, "FOLDER", tmp_path / "experiments")
    monkeypatch.setattr(sys.modules["experiments"], "__path__", [str(tmp_path / "experiments")])


def test_the_tasks_of_the_project_are_found():
    assert {"translation", "invariance"} <= set(command.find_tasks())


def test_a_task_is_a_folder_with_a_task_file(tasks, capsys):
    assert command.find_tasks() == ["one", "two"]
    command.reproduce("two", "", so_far=True)
    command.reproduce("one", "mine", so_far=False)
    assert capsys.readouterr().out == "two usual True\none mine False\n"


def test_seeds_are_chosen_in_translation_alone(tasks):
    with pytest.raises(UserError, match="TASK=one trains all its seeds"):
        command.reproduce("one", "", so_far=False, seeds=[1])


@pytest.fixture
def main(tasks, monkeypatch):
    """The command with some words. The handlers of the test process stay."""
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)

    def main(*words):
        monkeypatch.setattr(sys, "argv", ["experiments", *words])
        command.main()

    return main


def test_a_task_that_has_filled_the_memory_goes_on_in_a_new_process(main, monkeypatch, tmp_path):
    (tmp_path / "experiments" / "full").mkdir()
    (tmp_path / "experiments" / "full" / "task.py").write_text(
        "from experiments.runs.store import Restart\n\nDATA = ''\n\n\n"
        "def reproduce(data, so_far):\n    raise Restart\n"
    )
    started = []
    monkeypatch.setattr(command.os, "execv", lambda *given: started.append(given))
    main("--task", "full", "mine")
    assert started == [
        (sys.executable, [sys.executable, "-m", "experiments", "--task", "full", "mine"])
    ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "experiments: TASK=three is unknown; choose one of one, two\n"),
        (
            ModuleNotFoundError("No module named 'tensorflow'"),
            "`make reproduce` installs what is needed",
        ),
        (
            OSError(28, "No space left on device"),
            "experiments: [Errno 28] No space left on device\n",
        ),
    ],
)
def test_a_failure_is_one_line_and_status_2(error, words, main, monkeypatch, capsys):
    monkeypatch.setattr(command, "load_tensorflow", Mock(side_effect=error))
    with pytest.raises(SystemExit, match="2"):
        main("--task", "three")
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
