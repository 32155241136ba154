"""The figures of the service."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_docs_is_that_of_the_kept_figures():
    files = sorted((ROOT / "benchmarks" / "results").glob("serving_*.json"))
    script = ROOT / "benchmarks" / "serving_figures.py"
    run = subprocess.run([sys.executable, script, *files], capture_output=True, text=True, check=True)
    rows = run.stdout.splitlines()
    assert len(rows) > 5
    assert run.stdout in (ROOT / "docs" / "serving.md").read_text()
