"""The figures of `export --batch`."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def joining(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("joining")


def test_the_table_of_the_docs_is_that_of_the_kept_figures(joining):
    kept = json.loads((ROOT / "benchmarks" / "results" / "joining.json").read_text())
    rows = joining.table(kept["callers"])
    assert len(rows) == 5
    assert "\n".join(rows) in (ROOT / "docs" / "serving.md").read_text()


def test_every_call_of_every_caller_is_counted(joining):
    """Two callers whose calls take at least a hundredth of a second."""

    class Answer:
        def numpy(self):
            return b"a"

    def signature(sources):
        joining.time.sleep(0.01)
        return {"translations": Answer()}

    rate, p50, p99 = joining.calls(signature, ["a"], callers=2, seconds=0.2)
    assert 20 < rate <= 200
    assert 10 <= p50 <= p99
