"""The kept reports are what their logs and remarks give."""

import json
import re
import shutil
import sys

import numpy as np
import pytest

from experiments import publish as command
from experiments.overview import RESULTS
from experiments.publish import ARCHIVE, publish, read_archive, unpack, write_archive
from nmt.errors import UserError

KEPT = sorted(path.parent.name for path in RESULTS.glob("*/report.md"))


NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.])")


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_report_follows_from_its_logs(name, tmp_path):
    """A picture that the report has no more is removed."""
    (tmp_path / name).mkdir()
    shutil.copy(RESULTS / name / ARCHIVE, tmp_path / name)
    for remarks in (RESULTS / name).glob("remarks.md"):
        shutil.copy(remarks, tmp_path / name)
    (tmp_path / name / "of_an_earlier_report.png").touch()
    publish(name, tmp_path, tmp_path)
    files = {path.name for path in (RESULTS / name).iterdir()}
    assert {path.name for path in (tmp_path / name).iterdir()} == files
    for file in files & {"report.md", "report.json"}:
        found, kept = (
            NUMBER.split((folder / name / file).read_text("utf-8"))
            for folder in (tmp_path, RESULTS)
        )
        assert found[::2] == kept[::2]
        # Another processor rounds the last digits otherwise. Reports show fewer.
        np.testing.assert_allclose(
            np.double(found[1::2]), np.double(kept[1::2]), rtol=1e-9, atol=1e-12
        )
    assert json.loads((tmp_path / name / "report.json").read_text())["claims"]


def test_a_folder_without_logs_of_a_corpus_is_refused(tmp_path):
    with pytest.raises(UserError, match="that demo declares; train some"):
        publish("demo", tmp_path, tmp_path)
    assert not (tmp_path / "demo").exists()


def test_logs_of_new_trainings_join_the_kept_ones(tmp_path):
    kept = read_archive(RESULTS / "skip_thoughts")
    name = "rmsnorm-batch-32-1"
    (tmp_path / "skip_thoughts").mkdir()
    write_archive(
        tmp_path / "skip_thoughts", {each: log for each, log in kept.items() if each != name}
    )
    (tmp_path / "new" / "skip_thoughts").mkdir(parents=True)
    (tmp_path / "new" / "skip_thoughts" / f"{name}.json").write_text(json.dumps(kept[name]))
    publish("skip_thoughts", tmp_path, tmp_path / "new")
    assert read_archive(tmp_path / "skip_thoughts") == kept
    assert (tmp_path / "skip_thoughts" / "report.md").exists()


def test_a_log_that_is_refused_leaves_the_kept_ones_as_they_are(tmp_path):
    (tmp_path / "skip_thoughts").mkdir()
    shutil.copy(RESULTS / "skip_thoughts" / ARCHIVE, tmp_path / "skip_thoughts")
    before = (tmp_path / "skip_thoughts" / ARCHIVE).read_bytes()
    (tmp_path / "new" / "skip_thoughts").mkdir(parents=True)
    other = {**read_archive(tmp_path / "skip_thoughts")["rmsnorm-batch-32-1"], "options": {}}
    (tmp_path / "new" / "skip_thoughts" / "rmsnorm-batch-32-1.json").write_text(json.dumps(other))
    with pytest.raises(UserError, match="rmsnorm-batch-32-1"):
        publish("skip_thoughts", tmp_path, tmp_path / "new")
    assert [path.name for path in (tmp_path / "skip_thoughts").iterdir()] == [ARCHIVE]
    assert (tmp_path / "skip_thoughts" / ARCHIVE).read_bytes() == before


def test_every_log_is_unpacked_and_a_file_that_is_there_stays(tmp_path):
    kept = read_archive(RESULTS / "draw")
    name = next(iter(kept))
    (tmp_path / "draw").mkdir()
    (tmp_path / "draw" / f"{name}.json").write_text('{"newer": 1}')
    unpack(kept, "draw", tmp_path)
    found = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "draw").iterdir()}
    assert found == {**kept, name: {"newer": 1}}


def test_logs_of_a_plan_are_unpacked_for_its_corpora_by_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "LOGS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["publish", "--unpack", "planned"])
    command.main()
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.json")}
    kept = read_archive(RESULTS / "planned")
    assert found == {f"{name.partition('-')[0]}/{name}.json" for name in kept}


@pytest.mark.parametrize("arguments", [[], ["multi30k_rnn"], ["--unpack", "draw"]])
def test_a_mistake_has_status_2_and_makes_nothing(arguments, monkeypatch, tmp_path, capsys):
    (tmp_path / "draw").touch()  # a file in the place of the folder
    monkeypatch.setattr(command, "LOGS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["publish", *arguments])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "File exists" in capsys.readouterr().err or "draw" not in arguments
    assert len(list(tmp_path.iterdir())) == 1
