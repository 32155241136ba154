"""The tables in the docs are those that benchmarks/tables.py prints of the kept logs."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from benchmarks import tables
from nmt.config import make_config

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [*(ROOT / "docs").rglob("*.md"), ROOT / "experiments" / "README.md"]
TEXT = "\n".join(page.read_text("utf-8") for page in PAGES)
LIMITS = ("| | largest difference |",)  # of tests, and no log


def printed(path):
    """Returns the tables of a log, each as text."""
    log = json.loads(path.read_text("utf-8"))
    make = tables.TABLES.get(log.get("benchmark"), lambda _: [])
    return ["\n".join(lines) for lines in make(log)]


LOGS = [path for path in sorted(RESULTS.rglob("*.json")) if printed(path)]


@pytest.mark.parametrize("name", ["performance", "translation-speed"])
def test_each_table_of_a_page_is_printed_from_a_log(name):
    known = [table for path in LOGS for table in printed(path)]
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    shown = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    shown = [table.strip() for table in shown if not table.startswith(LIMITS)]
    assert shown
    assert [table for table in shown if table not in known] == []


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_each_table_of_a_log_is_on_a_page(path):
    assert [table for table in printed(path) if table not in TEXT] == []


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_log_names_the_machine(path):
    log = json.loads(path.read_text("utf-8"))
    assert log["machine"]["processor"] and log["machine"]["cores"]
    assert log["versions"] and log["date"]


def test_the_logs_that_were_made_once_are_described():
    page = (RESULTS / "once" / "README.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+\.json)`", page))
    assert named == {path.name for path in (RESULTS / "once").glob("*.json")}


def test_the_options_of_the_example_are_those_of_its_log():
    given = json.loads((ROOT / "examples" / "transformer-multi30k.json").read_text("utf-8"))
    example = json.loads(json.dumps(dataclasses.asdict(make_config(given))))
    logs = json.loads((RESULTS / "once" / "transformer_multi30k.json").read_text("utf-8"))
    # One training went on after its end, the kinds differ, and the batches of validation change
    # speed alone.
    free = {"finish_after", "layer_normalization_type", "valid_batch_size"}
    for log in logs.values():
        named = example.keys() & log["options"].keys() - free
        assert len(named) > 40
        assert all(log["options"][name] == example[name] for name in named)


def test_a_cell_that_a_row_lacks_is_empty():
    lines = tables.table([{"": "a", "one": "1"}, {"": "b", "two": "2"}])
    assert lines == ["|  | one | two |", "| --- | --- | --- |", "| a | 1 |  |", "| b |  | 2 |"]
