import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.updates import width

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def widths(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("benchmarks.widths")


def test_entries_of_every_norm_are_counted(widths):
    """A layer of the encoder has 2 norms, one of the decoder 3, and each stack one at its end."""
    work = widths.made_up("transformer", 8, layers=2)
    time = width(work.batches[0])
    assert widths.normalized_entries(work) == widths.SENTENCES * time * 8 * (2 * 2 + 1 + 2 * 3 + 1)


def test_the_time_beyond_no_norm_is_the_norms(widths):
    seconds = {"none": [0.5, 0.5], "layernorm": [1.0, 1.0], "rmsnorm": [0.75, 0.75]}
    assert widths.cells(seconds, "none", 2**30) == ["500.0", "0.500 [0.500, 0.500]", "", "", ""]
    assert widths.cells(seconds, "rmsnorm", 2**30) == ["750.0", "0.750 [0.750, 0.750]", "33.3%", "1024", "4.0"]


@pytest.mark.slow
def test_the_command_writes_what_it_prints(tmp_path):
    """In a process of its own, because it imports another nmt."""
    found = tmp_path / "found.json"
    given = ["--model_types", "rnn", "--widths", "8", "--rounds", "2", "--json", found]
    ended = subprocess.run([sys.executable, FOLDER / "widths.py", *given], capture_output=True, text=True, check=True)
    modes = json.loads(found.read_text())["figures"]["rnn"]["8"]["seconds"]
    kinds = ["none", "layernorm", "layernorm, again", "rmsnorm", "prmsnorm"]
    assert {mode: list(each) for mode, each in modes.items()} == {"XLA": kinds, "plain": kinds}
    assert all(len(rounds) == 2 for each in modes.values() for rounds in each.values())
    assert len(ended.stdout.splitlines()) == 1 + 2 * len(kinds)
