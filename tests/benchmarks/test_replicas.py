"""The script replicas.py, run in processes of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from benchmarks import tables

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "replicas.py"
SIZES = {"embedding_size": 4, "state_size": 6, "vocabulary": 20, "batch_size": 6}


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_measures_the_reduction_of_two_processes(tmp_path):
    words = [f"--{name}={value}" for name, value in SIZES.items()]
    command = [
        sys.executable,
        SCRIPT,
        "--models",
        "rnn",
        "--processes",
        "1",
        "2",
        "--rounds",
        "2",
        *words,
    ]
    ended = subprocess.run(
        [*command, "--json", tmp_path / "figures.json"], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert [line.split()[1:4] for line in ended.stdout.splitlines()[3:]] == [
        ["rnn", "|", "1"],
        ["rnn", "|", "2"],
    ]
    alone, two = json.loads((tmp_path / "figures.json").read_text())["figures"]["rnn"].values()
    assert (alone["dense"], alone["rows"], alone["rounds"]["reduction"]) == (0, 0, [0, 0])
    width = 48  # of a made-up batch
    assert two["rows"] == 2 * 3 * width * (
        4 * 4 + 4
    )  # both sides, three pairs: a row of 4 floats and an index
    assert two["dense"] > 4 * 20 * 4
    seconds, reduction = (two["rounds"][name] for name in ("seconds", "reduction"))
    assert len(seconds) == 2 and all(
        0 < part < whole for part, whole in zip(reduction, seconds, strict=True)
    )


@pytest.fixture
def kept():
    """The kept figures, by model and number of processes."""
    return json.loads((ROOT / "benchmarks" / "results" / "replicas.json").read_text())["figures"]


def test_the_docs_have_the_range_of_the_speed_ups(kept):
    def ratios(model, *waits):
        one, two = (kept[model][number]["rounds"] for number in "12")
        times = zip(one["seconds"], two["seconds"], *(two[name] for name in waits), strict=True)
        return [alone / (both - sum(waited)) for alone, both, *waited in times]

    page = " ".join((ROOT / "docs" / "maintainers" / "scaling.md").read_text().split())
    ranges = [
        f"from {min(found):.2f} to {max(found):.2f}"
        for found in (ratios("rnn"), ratios("transformer"))
    ]
    assert "{} (RNN) and {} (Transformer)".format(*ranges) in page
    (without,) = {f"{median(ratios(model, 'wait', 'reduction')):.1f}" for model in kept}
    assert (
        f"Without the reduction and the wait for the other process, it would be {without} for both."
        in page
    )


def test_the_table_of_the_docs_is_that_of_the_kept_figures(kept):
    (lines,) = tables.replicas({"figures": kept})
    assert "\n".join(lines) in (ROOT / "docs" / "maintainers" / "scaling.md").read_text()
