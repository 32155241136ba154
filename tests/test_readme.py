"""The README: its figures are those of the kept logs, and what it promises is there."""

import json
from pathlib import Path

import pytest

from benchmarks import tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
TIMES = ROOT / "benchmarks" / "results"
LINES = (ROOT / "README.md").read_text("utf-8").splitlines()
README = " ".join(" ".join(LINES).split())


def row(question):
    """Returns the cells of a row of the table of results: ours and answer."""
    (line,) = (line for line in LINES if line.startswith(f"| {question}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")][1:]


def report(name):
    return json.loads((RESULTS / name / "report.json").read_text("utf-8"))


def claimed(name, claim):
    """Returns what a report found for a claim, and the verdict."""
    (found,) = (
        each for each in report(name)["claims"] if each["claim"].rpartition(": ")[2] == claim
    )
    return found["ours"], found["verdict"]


def test_the_page_is_short():
    assert len(LINES) <= 150


@pytest.mark.parametrize(
    ("question", "claim", "verdict", "answer"),
    [
        ("[RNN]", "RMSNorm is not worse than LayerNorm, RNN", "shown", "not worse"),
        ("[RNN]", "RMSNorm is equal to LayerNorm, RNN", "not shown", "not worse by 0.5; equal"),
        (
            "[Post-norm",
            "RMSNorm is equal to LayerNorm, Transformer, post-norm",
            "shown",
            "equal within 0.5",
        ),
        (
            "[Pre-norm",
            "RMSNorm is not worse than LayerNorm, Transformer, pre-norm",
            "not shown",
            "not shown",
        ),
    ],
)
def test_translation_has_the_verdicts_of_the_plan(question, claim, verdict, answer):
    found, judged = claimed("planned", claim)
    ours, told = row(question)
    assert found.startswith(ours)
    assert judged.startswith(f"{verdict}: ")
    assert told.startswith(answer)


def test_the_cause_has_the_difference_of_its_plan():
    (found,) = (
        each for each in report("multi30k_pre_norm")["claims"] if each["claim"].startswith("C1")
    )
    assert found["verdict"] == "shown"
    assert row("[Why]")[0].startswith(found["ours"].partition(" of training")[0])


def test_the_time_is_that_of_every_judged_model():
    judged = []
    for path in sorted(RESULTS.glob("*/report.json")):
        speed = json.loads(path.read_text("utf-8"))["sections"].get("speed", {})
        judged += speed.get("data", {}).get("judged", ())
    judged = [each for each in judged if each["kind"].startswith("RMSNorm")]
    refused = [each for each in judged if each["verdict"].startswith("refused")]
    ratios = [each["ratio"][0] for each in judged if each not in refused]
    verdicts = [each["verdict"].partition(":")[0] for each in judged]
    ours, answer = row("Less [time]")
    assert ours.startswith(f"{min(ratios):.2f} to {max(ratios):.2f} of")
    assert f"in {len(ratios)} measurements" in ours
    assert (f"{len(refused)} more refused" in ours) == bool(refused)
    counts = [verdicts.count("shown"), verdicts.count("the opposite")]
    assert answer.startswith("{} faster, {} slower".format(*counts))


def test_the_times_of_a_step_of_fit():
    figures = json.loads((TIMES / "fit.json").read_text("utf-8"))["figures"]
    default = [each["default"] for each in figures.values()]
    saved = [
        1 - tables.ratio(each["rmsnorm_tf"], each["keras RMSNormalization"]) for each in default
    ]
    assert f"takes {min(saved):.0%} to {max(saved):.0%} less time than with" in README


def test_the_times_of_whole_keras_models():
    models = json.loads((TIMES / "fold.json").read_text("utf-8"))["figures"].values()

    def saved(function):
        return [
            1 - tables.ratio(each["seconds"]["after"], each["seconds"]["before"])
            for each in models
            if each["converts"] == function and each["converted"]
        ]

    replaced = saved("replace_rms_norm")
    folded = saved("fold_layer_norm")
    assert f"mostly matrix products, {min(replaced):.0%} to {max(replaced):.0%} less" in README
    assert len(folded) == 9
    assert f"KerasHub take {min(folded):.0%} to {max(folded):.0%} less time" in README


def test_the_time_over_joeynmt():
    figures = json.loads((TIMES / "peers_transformer.json").read_text("utf-8"))["figures"]
    ours, theirs = (figures[name]["rounds"] for name in ("ours float32", "JoeyNMT float32"))
    assert f"takes {tables.ratio(ours, theirs):.2f} of JoeyNMT's time" in README


def test_no_command_has_the_placeholder_of_the_address():
    assert "git.invalid" not in README
