import sys

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


def test_an_unknown_task_is_refused(tasks):
    with pytest.raises(UserError, match=r"TASK=three is unknown; .* one, two"):
        command.reproduce("three", "", so_far=False)


def test_seeds_are_chosen_in_translation_alone(tasks):
    with pytest.raises(UserError, match="TASK=one trains all its seeds"):
        command.reproduce("one", "", so_far=False, seeds=[1])


def test_a_task_that_has_filled_the_memory_goes_on_in_a_new_process(tasks, monkeypatch, tmp_path):
    (tmp_path / "experiments" / "full").mkdir()
    (tmp_path / "experiments" / "full" / "task.py").write_text(
        "from experiments.runs.store import Restart\n\nDATA = ''\n\n\n"
        "def reproduce(data, so_far):\n    raise Restart\n"
    )
    started = []
    monkeypatch.setattr(command.os, "execv", lambda *given: started.append(given))
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["experiments", "--task", "full", "mine"])
    command.main()
    assert started == [
        (sys.executable, [sys.executable, "-m", "experiments", "--task", "full", "mine"])
    ]


def test_a_mistake_is_one_line_and_status_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["experiments", "--task", "three"])
    monkeypatch.setattr(
        command.signal, "signal", lambda *_: None
    )  # keep the handlers of the test process
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert capsys.readouterr().err.startswith("experiments: TASK=three is unknown")


@pytest.mark.parametrize(
    "error, words",
    [
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
def test_a_missing_package_and_a_full_disk_have_a_sentence_each(error, words, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(command, "load_tensorflow", fail)
    monkeypatch.setattr(sys, "argv", ["experiments"])
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match="2"):
        command.main()
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
