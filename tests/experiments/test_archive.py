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
    (tmp_path / "logs").mkdir()
    name = next(iter(kept))
    (tmp_path / "logs" / f"{name}.json").write_text('{"newer": 1}')
    run(monkeypatch, NAME, tmp_path / "logs")
    found = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "logs").iterdir()}
    assert found == {**kept, name: {"newer": 1}}


@pytest.mark.parametrize("arguments", [[], [NAME], ["multi30k_rnn", "logs"]])
def test_a_mistake_has_status_2_and_makes_nothing(arguments, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, *arguments)
    assert "error: " in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_one_line_and_status_2(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, NAME, tmp_path / "file")
    assert capsys.readouterr().err.startswith("experiments.archive: [Errno 17] File exists")
