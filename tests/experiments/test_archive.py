"""The command that writes the logs of a kept report to a folder."""

import json
import sys

import pytest

from experiments import archive
from experiments.overview import RESULTS

NAME = "draw"


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["archive", *map(str, arguments)])
    archive.main()


def test_every_log_is_a_file_and_one_that_is_there_stays(monkeypatch, tmp_path):
    kept = archive.read_archive(RESULTS / NAME)
    (tmp_path / NAME).mkdir()
    name = next(iter(kept))
    (tmp_path / NAME / f"{name}.json").write_text('{"newer": 1}')
    run(monkeypatch, NAME, "--logs", tmp_path)
    found = {path.stem: json.loads(path.read_text()) for path in (tmp_path / NAME).iterdir()}
    assert found == {**kept, name: {"newer": 1}}


def test_logs_of_a_plan_go_to_the_folders_of_its_corpora(monkeypatch, tmp_path):
    run(monkeypatch, "planned", "--logs", tmp_path)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.json")}
    kept = archive.read_archive(RESULTS / "planned")
    assert found == {f"{name.partition('-')[0]}/{name}.json" for name in kept}


@pytest.mark.parametrize("arguments", [[], ["multi30k_rnn"]])
def test_a_mistake_has_status_2_and_makes_nothing(arguments, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, *arguments)
    assert "error: " in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_one_line_and_status_2(monkeypatch, tmp_path, capsys):
    (tmp_path / NAME).touch()
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, NAME, "--logs", tmp_path)
    assert capsys.readouterr().err.startswith("experiments.archive: [Errno 17] File exists")
