"""`python -m experiments.overview` writes experiments/results/README.md, the page over all kept reports."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.storage.files import atomic_write

from .reporting.speed import told
from .reporting.writer import markdown_table

RESULTS = Path(__file__).parent / "results"
PLANNED = "planned"
_TOO_SHORT = ("cifar10", "draw", "mnist", "multi30k_transformer", "order_embeddings")  # to judge; the page says so

_PAGE = Path(__file__).with_suffix(".md")  # the page with gaps for the tables


def read_reports(results: Path) -> dict[str, dict[str, Any]]:
    """Returns the kept reports by the names of their folders; each has its `title` too."""
    found = {}
    for path in sorted(results.glob("*/report.json")):
        title = path.with_name("report.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
        found[path.parent.name] = {**json.loads(path.read_text("utf-8")), "title": title}
    return found


def overview(results: Path) -> str:
    """Returns the page in Markdown; `results` holds a folder for each report."""
    reports = read_reports(results)
    tables = {
        "planned": "",
        "done": "",
        "measures": "",
        "times": markdown_table(_TIME_COLUMNS, _times(reports), "---:"),
    }
    if PLANNED in reports:
        claims = [[each["claim"], each["ours"], each["verdict"]] for each in reports[PLANNED]["claims"]]
        tables["planned"] = markdown_table(["claim", "difference", "verdict"], claims, ":---")
        tables["done"] = reports[PLANNED]["about"][-1]
        measures = reports[PLANNED]["sections"]["measures"]
        tables["measures"] = markdown_table(measures["columns"], measures["rows"], ":---")
    return _PAGE.read_text("utf-8").format(**tables, others=_others(reports))


_TIME_COLUMNS = ("task", "kind", "ms", "LayerNorm: ms", "ratio", "paper: ratio", "takes less time")


def _times(reports: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Returns the rows of the table of times, from the lowest ratio to the highest."""
    found = [
        (each, name, report["title"])
        for name, report in reports.items()
        for each in report["sections"].get("speed", {}).get("data", {}).get("judged", ())
    ]
    return [
        [
            f"[{title}]({name}/report.md), {each['label']}",
            each["kind"],
            f"{each['ms']:.1f}",
            f"{each['layernorm_ms']:.1f}",
            told(each["ratio"]),
            f"{each['published']:.2f}",
            each["verdict"],
        ]
        for each, name, title in sorted(found, key=lambda found: found[0]["ratio"][0])
    ]


def _others(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the table with the differences of LayerNorm and RMSNorm in each report."""
    rows = []
    for name, report in reports.items():
        judged = report["sections"].get("differences", {}).get("data", [])
        if name not in (PLANNED, *_TOO_SHORT):
            cells = [
                _differences(judged, *pair) for pair in (("LayerNorm", "without a norm"), ("RMSNorm", "LayerNorm"))
            ]
            rows.append([f"[{report['title']}]({name}/report.md)", *cells])
    return markdown_table(["task", "LayerNorm minus without a norm", "RMSNorm minus LayerNorm"], rows, ":---")


def _differences(judged: Sequence[Mapping[str, Any]], one: str, other: str) -> str:
    pair = re.compile(rf"{one}\b.* minus {other}\b")
    found = [f"{each['ours']}: {each['verdict']}" for each in judged if pair.match(each["pair"])]
    return "; ".join(found) or "not judged"


def write_overview() -> None:
    """Writes the page."""
    with atomic_write(RESULTS / "README.md") as file:
        file.write(overview(RESULTS))
    print(f"wrote {RESULTS / 'README.md'}")


if __name__ == "__main__":
    write_overview()
