"""The script bulk.py: its figures and its table, and a small measurement in the environment that has Beam."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.bulk import summary, table
from tests.nmt.bulk.toy import write_toy

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "results" / "bulk.json"
PAGE = (ROOT / "docs" / "bulk.md").read_text()
ROUNDS = [(106.5, 0.999, 90.2), (90.0, 0.9, 95.0), (120.0, 0.9995, 80.0)]


def made_up():
    """Returns figures whose medians are the first of the rounds."""
    names = ("speed", "share", "speed_with_start")
    return {1: summary([dict(zip(names, values, strict=True)) for values in ROUNDS])}


def test_the_median_of_each_figure_counts():
    (found,) = made_up().values()
    assert found.pop("rounds") == {
        "speed": [106.5, 90.0, 120.0],
        "share": [0.999, 0.9, 0.9995],
        "speed_with_start": [90.2, 95.0, 80.0],
    }
    assert found == {"speed": 106.5, "share": 0.999, "speed_with_start": 90.2}


def test_the_table_has_the_form_of_that_in_the_docs():
    """Also if the figures come from a file, where the numbers of processes are strings."""
    *heads, row = table(made_up())
    assert "\n".join(heads) in PAGE
    assert row == "| 1 | 106.5 | 99.9% | 90.2 | 0.1% |"
    assert table(json.loads(json.dumps(made_up()))) == [*heads, row]


@pytest.mark.skipif(not KEPT.exists(), reason="no figures are kept")
def test_the_table_of_the_docs_is_that_of_the_kept_figures():
    found = json.loads(KEPT.read_text())
    assert "\n".join(table(found["processes"])) in PAGE
    assert f"Two processes reach {found['speedup']:.2f} times the lines/s of one." in PAGE


@pytest.mark.slow
@pytest.mark.skipif("BULK_PYTHON" not in os.environ, reason="needs a Python with the extra bulk: BULK_PYTHON")
def test_measures_two_processes(tmp_path):
    export, figures = write_toy(tmp_path / "export"), tmp_path / "new" / "figures.json"
    command = [os.environ["BULK_PYTHON"], ROOT / "benchmarks" / "bulk.py", export, "--rounds", "1", "--lines", "40"]
    command += ["--piece_lines", "5", "--json", figures]
    ended = subprocess.run(command, input="slow a\nslow b\n", capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(figures.read_text())
    assert ended.stdout.splitlines()[:4] == table(found["processes"])
    assert ended.stdout.endswith(f"\nTwo processes reach {found['speedup']:.2f} times the lines/s of one.\n")
    assert found["options"] == {"lines": 40, "piece_lines": 5, "rounds": 1}
    assert found["versions"].keys() == {"tensorflow", "apache-beam"}
    assert all(len(each["rounds"]["speed"]) == 1 for each in found["processes"].values())
