"""The script replicas.py, run in processes of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "replicas.py"
SIZES = {"embedding_size": 4, "state_size": 6, "vocabulary": 20, "batch_size": 6}


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_measures_the_reduction_of_two_processes(tmp_path):
    words = [f"--{name}={value}" for name, value in SIZES.items()]
    command = [sys.executable, SCRIPT, "--models", "rnn", "--processes", "1", "2", "--rounds", "2", *words]
    ended = subprocess.run([*command, "--json", tmp_path / "figures.json"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert [line.split()[:2] for line in ended.stdout.splitlines()[2:]] == [["rnn", "1"], ["rnn", "2"]]
    alone, two = json.loads((tmp_path / "figures.json").read_text())["models"]["rnn"].values()
    assert (alone["dense"], alone["rows"], alone["reduction"]) == (0, 0, 0)
    width = 48  # of a made-up batch
    assert two["rows"] == 2 * 3 * width * (4 * 4 + 4)  # both sides, three pairs: a row of 4 floats and an index
    assert two["dense"] > 4 * 20 * 4
    assert 0 < two["share"] < 1
    assert len(two["rounds"]["seconds"]) == 2


def test_the_table_of_the_docs_is_that_of_the_kept_figures():
    found = json.loads((ROOT / "benchmarks" / "results" / "replicas.json").read_text())["models"]
    rows = [
        f"| {model} | {number} | {each['seconds']:.2f} | {each['speedup']:.2f} | {each['share']:.0%} "
        f"| {each['dense'] / 1e6:.1f} | {each['rows'] / 1e6:.1f} |"
        for model, numbers in found.items()
        for number, each in numbers.items()
    ]
    assert "\n".join(rows) in (ROOT / "docs" / "scaling.md").read_text()
