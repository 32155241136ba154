"""Writes experiments/results/README.md, the page over all kept reports."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runner import ratio
from nmt.storage.files import atomic_write

from .reporting.speed import ratio_in_words
from .reporting.writer import markdown_table

RESULTS = Path(__file__).parent / "results"
PLANNED = "planned"  # the report of the first preregistration
PRE_NORM = "multi30k_pre_norm"
_BENCHMARKS = Path(__file__).parents[1] / "benchmarks" / "results"
# Tasks whose trainings are too short to judge kinds by, as the page says.
_TOO_SHORT = (
    "cifar10",
    "draw",
    "mnist",
    "multi30k_transformer",
    "order_embeddings",
)


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
    measures = reports[PLANNED]["sections"]["measures"]
    return (
        (RESULTS / "overview.md")
        .read_text("utf-8")
        .format(
            planned=_claims(reports[PLANNED]),
            measures=markdown_table(measures["columns"], measures["rows"], ":---"),
            cause=_claims(reports[PRE_NORM]),
            times=_times(reports),
            others=_others(reports),
            **_at_the_papers_size(),
        )
    )


def _claims(report: Mapping[str, Any]) -> str:
    """Returns how many trainings of a preregistration are done, and the table of its claims."""
    claims = [[each["claim"], each["ours"], each["verdict"]] for each in report["claims"]]
    table = markdown_table(["claim", "difference", "verdict"], claims, ":---")
    return f"{report['about'][-1]}\n\n{table}"


def _times(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the table of times, from the lowest ratio to the highest."""
    judged = []
    for name, report in reports.items():
        times = report["sections"].get("speed", {}).get("data", {}).get("judged", ())
        judged += [(each, name, report["title"]) for each in times]
    rows = [
        [
            f"[{title}]({name}/report.md), {each['label']}",
            each["kind"],
            f"{each['ms']:.1f}",
            f"{each['layernorm_ms']:.1f}",
            ratio_in_words(each["ratio"]),
            f"{each['published']:.2f}",
            each["verdict"],
        ]
        for each, name, title in sorted(judged, key=lambda found: found[0]["ratio"][0])
    ]
    columns = ("task", "kind", "ms", "LayerNorm: ms", "ratio", "paper: ratio", "takes less time")
    return markdown_table(columns, rows, "---:")


def _at_the_papers_size() -> dict[str, str]:
    """Returns the ratios to LayerNorm's time in RNNs of the paper's size.

    They are of an update, and of a gradient on a GPU.
    """
    names = ("once/training_paper", "once/gpu")
    update, gpu = (json.loads((_BENCHMARKS / f"{name}.json").read_text("utf-8")) for name in names)
    (rnn,) = (
        each["kinds"]
        for each in gpu["groups"]
        if each["group"]["what"].startswith("gradient of the RNN")
    )
    kinds = {"update": update["updates"]["float32"], "gradient": rnn}
    found = {
        of: ratio(each["rmsnorm"]["rounds"], each["layernorm"]["rounds"])
        for of, each in kinds.items()
    }
    return {**{of: f"{taken:.2f}" for of, taken in found.items()}, "gpu": gpu["device"]}


def _others(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the table with the differences of LayerNorm and RMSNorm in each report."""
    rows = []
    for name, report in reports.items():
        judged = report["sections"].get("differences", {}).get("data", [])
        if name not in (PLANNED, PRE_NORM, *_TOO_SHORT):
            cells = [
                _differences(judged, *pair)
                for pair in (("LayerNorm", "without a norm"), ("RMSNorm", "LayerNorm"))
            ]
            rows.append([f"[{report['title']}]({name}/report.md)", *cells])
    return markdown_table(
        ["task", "LayerNorm minus without a norm", "RMSNorm minus LayerNorm"], rows, ":---"
    )


def _differences(judged: Sequence[Mapping[str, Any]], one: str, other: str) -> str:
    """Returns the differences of all settings of two kinds.

    A setting is in parentheses behind a kind.
    """
    pair = re.compile(rf"{one}\b(?: (\(.*?\)))?.* minus {other}\b")
    found = [(pair.match(each["pair"]), each) for each in judged]
    verdicts = [
        f"{each['ours']} {match[1] or ''}".strip() + f": {each['verdict']}"
        for match, each in found
        if match
    ]
    return "; ".join(verdicts) or "not judged"


def write_overview() -> None:
    with atomic_write(RESULTS / "README.md") as file:
        file.write(overview(RESULTS))
    print(f"wrote {RESULTS / 'README.md'}")
