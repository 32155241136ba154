"""The pages and the kept logs of the benchmarks, for the tests that compare them."""

import json
from pathlib import Path

from benchmarks import tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PERFORMANCE = "\n".join(
    (ROOT / "docs" / name).read_text("utf-8") for name in ("performance.md", "translation-speed.md")
)
PROSE = " ".join(PERFORMANCE.split())


def printed(path):
    """Returns the tables of a log, or nothing if the page that has them has a test of its own."""
    log = json.loads(path.read_text("utf-8"))
    return tables.TABLES[log["benchmark"]](log) if log.get("benchmark") in tables.TABLES else []


def page_text(*parts):
    return ROOT.joinpath(*parts).read_text("utf-8")


def page(*parts):
    """Returns a page without its line breaks."""
    return " ".join(ROOT.joinpath(*parts).read_text("utf-8").split())


LOGS = sorted(path for path in RESULTS.rglob("*.json") if printed(path))


def log_of(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def figures(name):
    return log_of(name)["figures"]
