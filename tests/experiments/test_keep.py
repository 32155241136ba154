"""The kept reports are what their logs and remarks give."""

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.keep import keep
from experiments.overview import RESULTS
from nmt.errors import UserError

KEPT = sorted(path.parent.name for path in RESULTS.glob("*/report.md"))


def test_there_are_some():
    assert KEPT


def words(picture: Path) -> list[str]:
    """Returns the words of an SVG file, without its tick labels' numbers."""
    found = re.findall(r"<text[^>]*>([^<]+)</text>", picture.read_text("utf-8"))
    return [text for text in found if re.search("[a-z]", text)]


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_report_follows_from_its_logs(name, tmp_path):
    """A picture that the report has no more is removed."""
    shutil.copytree(RESULTS / name / "logs", tmp_path / name / "logs")
    if (remarks := RESULTS / name / "remarks.md").exists():
        shutil.copy(remarks, tmp_path / name)
    (tmp_path / name / "of_an_earlier_report.png").touch()
    keep(name, tmp_path)
    files = {path.name for path in (RESULTS / name).iterdir()}
    assert {path.name for path in (tmp_path / name).iterdir()} == files
    for file in files & {"report.md", "report.json"}:
        found, kept = ((folder / name / file).read_text("utf-8") for folder in (tmp_path, RESULTS))
        assert found == kept
    for file in (file for file in files if file.endswith(".svg")):
        assert words(tmp_path / name / file) == words(RESULTS / name / file)
    assert json.loads((tmp_path / name / "report.json").read_text())["claims"]


def test_a_folder_without_logs_of_a_corpus_is_refused(tmp_path):
    (tmp_path / "demo" / "logs").mkdir(parents=True)
    with pytest.raises(UserError, match="no log of a training that demo declares"):
        keep("demo", tmp_path)
    assert not (tmp_path / "demo" / "report.md").exists()
