"""The tables of the pages are those that the kept logs of the benchmarks give."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

from benchmarks import layer_figures, tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text("utf-8")
UNTESTED = "## Figures without a log"
NOT_MEASURED = ("| | largest difference |", "| arrays of the size of x")  # limits of tests, and counts


def printed(path):
    """Returns the tables of a log, or nothing if another test compares them."""
    log = json.loads(path.read_text("utf-8"))
    if log.get("benchmark") == "layer":
        return layer_figures.tables(log["figures"])
    return tables.TABLES[log["benchmark"]](log) if log.get("benchmark") in tables.TABLES else []


LOGS = sorted(path for path in RESULTS.glob("*.json") if printed(path))


def figures(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["figures"]


def layer_ratio(mode, shape=(4096, 1024), dtype="float32", over=layer_figures.KERAS):
    """Returns the time of both passes of our layer over that of another."""
    place = {"operation": "norm", "shape": list(shape), "dtype": dtype, "mode": mode, "passes": "forward+backward"}
    (cell,) = (each for each in figures("layer") if place.items() <= each.items())
    return median(cell["seconds"][layer_figures.OURS]) / median(cell["seconds"][over])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_log_has_its_tables_on_the_page(path):
    for lines in printed(path):
        assert "\n".join(lines) in PERFORMANCE


def test_every_table_of_the_page_has_a_log():
    known = {"\n".join(lines) for path in LOGS for lines in printed(path)}
    found = re.findall(r"(?:^\|.*\n)+", PERFORMANCE.partition(UNTESTED)[0], re.MULTILINE)
    assert known and {each.strip() for each in found if not each.startswith(NOT_MEASURED)} == known


def test_logs_name_the_machine():
    for path in LOGS:
        log = json.loads(path.read_text("utf-8"))
        assert log["machine"]["processor"] and log["machine"]["cores"] and log["versions"]["tensorflow"] and log["date"]


def page(*parts):
    """Returns a page without its line breaks."""
    return " ".join(ROOT.joinpath(*parts).read_text("utf-8").split())


def test_the_page_of_the_layer_has_the_range_of_its_times():
    def told(mode):
        large = [layer_ratio(mode, shape) for shape in ((4096, 1024), (16384, 1024), (2048, 4096))]
        return f"{min(large):.2f} to {max(large):.2f}"

    eager, graph, xla = map(told, ("eager", "tf.function", "xla"))
    found = f"take {eager} of the time of Keras's layer in eager mode, {graph} in a `tf.function`, and {xla} under XLA."
    assert found in page("docs", "layer.md")


def test_the_page_of_folding_has_the_range_of_its_gains():
    two = [
        tables.ratio(mode["before"], mode["after"]) - 1
        for model in figures("convert").values()
        for mode in model["seconds"].values()
    ]
    hub = [
        1 - tables.ratio(model["seconds"]["after"], model["seconds"]["before"])
        for model in figures("fold").values()
        if model["converts"] == "fold_layer_norm" and model["converted"]
    ]
    found = page("docs", "convert.md")
    assert f"are {min(two):.0%} to {max(two):.0%} faster in inference after folding" in found
    assert f"the models of KerasHub take {min(hub):.0%} to {max(hub):.0%} less time" in found


def test_the_page_of_nmt_has_the_times_over_those_of_nematus():
    updates = json.loads((RESULTS / "training_rnn.json").read_text("utf-8"))["updates"]["float32"]
    none, layernorm = (f"{updates[kind]['ratio_nematus']:.2f}" for kind in ("none", "layernorm"))
    found = f"{none} (no norm) and {layernorm} (LayerNorm) of the time of Nematus v0.3"
    assert found in page("docs", "nmt.md")


def test_the_readme_has_the_times_of_the_layer():
    eager, graph, xla = (f"{layer_ratio(mode):.2f}" for mode in ("eager", "tf.function", "xla"))
    assert f"The layer alone takes {eager} (eager), {graph} (`tf.function`) and {xla} (XLA) of the time" in page(
        "README.md"
    )
