import json

import pytest

from experiments.overview import RESULTS, overview


def report(folder, title, **facts):
    folder.mkdir()
    (folder / "report.md").write_text(f"# {title}\n\nText.\n")
    (folder / "report.json").write_text(
        json.dumps({"about": ["Small.", "2 of 9 are done."], "sections": {}, **facts})
    )


def timed(kind, ratio):
    found = {
        "kind": kind,
        "label": "XLA",
        "ms": 90.0,
        "layernorm_ms": 100.0,
        "published": 0.5,
        "verdict": "shown",
    }
    return {**found, "ratio": [ratio, ratio - 0.1, ratio + 0.1]}


@pytest.fixture
def results(tmp_path):
    for name, ratio in (("slow", 0.95), ("fast", 0.75)):
        differences = [
            {"pair": f"{one} minus {other}, small", "ours": f"{one} of {name}", "verdict": "shown"}
            for one, other in (
                ("LayerNorm", "without a norm"),
                ("RMSNorm", "LayerNorm"),
                ("RMSNorm", "BatchNorm"),
            )
        ]
        sections = {
            "speed": {"data": {"judged": [timed("RMSNorm", ratio)]}},
            "differences": {"data": differences},
        }
        report(tmp_path / name, f"Task {name}", sections=sections)
    names = ("P1: RMSNorm is not worse, RNN", "P2: RMSNorm is equal, RNN")
    claims = [{"claim": name, "ours": "+0.1", "verdict": "shown"} for name in names]
    report(
        tmp_path / "planned",
        "Planned",
        claims=claims,
        sections={"measures": {"columns": ["", "chrF"], "rows": [["RNN", "+1"]]}},
    )
    cause = {"claim": "C1: the offset lowers the loss", "ours": "-0.01", "verdict": "shown"}
    report(
        tmp_path / "multi30k_pre_norm",
        "Why",
        about=["Small.", "20 of 20 are done."],
        claims=[cause],
    )
    return tmp_path


def test_the_page_has_the_planned_claims_then_times_from_the_best_to_the_worst_then_a_line_a_task(
    results,
):
    page = overview(results)
    lines = [
        "2 of 9 are done.",
        "| P1: RMSNorm is not worse, RNN | +0.1 | shown |",
        "(planned/differences.png)",
        "| RNN | +1 |",
        "20 of 20 are done.",
        "| C1: the offset lowers the loss | -0.01 | shown |",
        "fast/report.md), XLA | RMSNorm | 90.0 | 100.0 | 0.75 [0.65, 0.85] | 0.50 | shown |",
        "slow/report.md), XLA | RMSNorm | 90.0 | 100.0 | 0.95 [0.85, 1.05] | 0.50 | shown |",
        "| [Task fast](fast/report.md) | LayerNorm of fast: shown | RMSNorm of fast: shown |",
    ]
    places = [page.index(line) for line in lines]
    assert places == sorted(places)


def test_the_kept_page_is_that_of_the_kept_reports():
    assert (RESULTS / "README.md").read_text("utf-8") == overview(RESULTS)
