"""The README: its figures are those of the kept logs, and what it promises is there."""

import gzip
import json
import statistics
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from benchmarks import tables
from experiments.reporting.intervals import signed, t_interval
from experiments.reporting.speed import AGAIN, Timed

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
TIMES = ROOT / "benchmarks" / "results"
LINES = (ROOT / "README.md").read_text("utf-8").splitlines()
README = " ".join(" ".join(LINES).split())


def row(question):
    """Returns the cells of a row of the table of results: paper, ours and answer."""
    (line,) = (line for line in LINES if line.startswith(f"| {question}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")][1:]


def planned(claim):
    """Returns what was found for a claim of the plan, and the verdict."""
    report = json.loads((RESULTS / "planned" / "report.json").read_text("utf-8"))
    (found,) = (each for each in report["claims"] if each["claim"].rpartition(": ")[2] == claim)
    return found["ours"], found["verdict"]


def logs(task):
    """Returns the logs of a kept report by name."""
    archive = RESULTS / task / "logs.json.gz"
    if archive.exists():
        return json.loads(gzip.decompress(archive.read_bytes()))
    return {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in (RESULTS / task / "logs").glob("*.json")
    }


def test_the_page_is_short():
    assert len(LINES) <= 100


def test_the_rnn_is_not_worse_and_equality_is_missed_as_told():
    ours, verdict = planned("RMSNorm is not worse than LayerNorm, RNN")
    equal = planned("RMSNorm is equal to LayerNorm, RNN")[1]
    _, told, answer = row("Does an [RNN]")
    assert (
        told.startswith(ours.partition(" BLEU")[0])
        and verdict.startswith("shown")
        and answer.startswith("yes")
    )
    assert (
        equal.startswith("not shown")
        and f"interval ends at {equal.split(', ')[1].strip(']')}," in answer
    )


def test_the_transformers_have_the_verdicts_of_the_plan():
    ours, verdict = planned("RMSNorm is equal to LayerNorm, Transformer, post-norm")
    _, told, answer = row("A Transformer, [post-norm]")
    assert (
        told.startswith(ours.partition(" BLEU")[0])
        and verdict.startswith("shown")
        and answer.startswith("yes, equal")
    )
    ours, verdict = planned("RMSNorm is not worse than LayerNorm, Transformer, pre-norm")
    _, told, answer = row("A Transformer, [pre-norm]")
    assert told.startswith(ours.partition(" BLEU")[0]) and verdict.startswith("not shown")
    assert answer.startswith("not shown")


def test_the_offset_has_the_differences_of_the_longer_trainings():
    sections = json.loads((RESULTS / "planned" / "report.json").read_text("utf-8"))["sections"]
    found = {each["contrast"].split(",")[0]: each for each in sections["measures"]["data"][-2:]}
    bleu = t_interval(found["RMSNorm with an offset minus RMSNorm"]["bleu"])
    loss = t_interval(found["RMSNorm with an offset minus LayerNorm"]["train_loss"])
    answer = row("A Transformer, [pre-norm]")[2]
    assert answer.endswith(
        f"That it raises RMSNorm's BLEU is not shown: {signed(bleu, 2)}"
    ) and not bleu.excludes(0)
    assert f"it differs from LayerNorm's by {signed(loss, 4)} after 6,000 updates." in answer


def test_the_levels_are_those_of_the_plan():
    sections = json.loads((RESULTS / "planned" / "report.json").read_text("utf-8"))["sections"]
    values = {cells[0]: float(cells[2].split()[0]) for cells in sections["values"]["rows"]}
    for question, model in (
        ("Does an [RNN]", "RNN"),
        ("A Transformer, [post", "post-norm"),
        ("A Transformer, [pre", "pre-norm"),
    ):
        assert f"at {values[f'LayerNorm, {model}']:.0f} BLEU" in row(question)[1]


def test_the_other_tasks_have_the_verdicts_of_their_reports():
    def shown(task, claim="RMSNorm learns as fast as"):
        """Returns for each claim that begins so whether it is shown."""
        found = json.loads((RESULTS / task / "report.json").read_text("utf-8"))["claims"]
        claims = [each for each in found if each["claim"].startswith(claim)]
        return [each["verdict"].startswith("shown") for each in claims]

    told = row("Do [other tasks]")[1]
    assert told.startswith("in skip-thoughts") and "not shown in handwriting" in told
    assert shown("skip_thoughts") == [True] and shown("handwriting") == [False, False]
    assert shown("handwriting", "LayerNorm learns faster than") == [False, False]
    reader = json.loads((RESULTS / "reader" / "report.json").read_text("utf-8"))["claims"]
    (found,) = (
        each["verdict"]
        for each in reader
        if each["claim"] == "RMSNorm ends with the error of LayerNorm"
    )
    assert found.startswith("shown") and found.endswith("margin ±6.25")
    assert shown("handwriting", "RMSNorm learns faster than") == [False, False] and shown(
        "reader"
    ) == [False]


def test_rmsnorm_does_not_bear_large_initial_weights():
    report = json.loads((RESULTS / "multi30k" / "report.json").read_text("utf-8"))
    (ours,) = (each["ours"] for each in report["claims"] if "dev BLEU" in each["ours"])
    assert row("Does it bear")[1] == f"{ours.partition(' dev BLEU')[0]} dev BLEU after 600 updates"


def updates():
    """Yields the seconds of rounds by kind, in each of five processes, of each model and mode."""
    for folder in sorted(each for each in RESULTS.iterdir() if each.is_dir()):
        processes = (logs(folder.name).get("times") or {}).get("processes", [])
        if len(processes) != 5:
            continue
        for setting, modes in processes[0].get("seconds", {}).items():
            for mode in modes:
                yield [each["seconds"][setting][mode] for each in processes]
        for system in processes[0].get("updates", {}):
            if system != "Nematus":
                yield [rounds_of(each["updates"][system]) for each in processes]


def rounds_of(kinds):
    return {kind: found["rounds"] for kind, found in kinds.items()}


def test_the_time_is_that_of_every_model_that_five_processes_timed():
    """By the rule of the reports."""
    timed = []
    for processes in updates():
        for each in processes:
            if "layernorm 2" in each:
                each[AGAIN] = each.pop("layernorm 2")
        if {"none", "rmsnorm", "layernorm", AGAIN} <= set(processes[0]):
            timed.append(Timed("", processes))
    ratios = [each.ratio("rmsnorm").middle for each in timed]
    verdicts = [each.verdict("rmsnorm").partition(":")[0] for each in timed]
    saved = []
    for each in timed:
        kinds = ("none", "layernorm", "rmsnorm")
        times = []
        for process in each.processes:
            times.append([statistics.median(process[kind]) for kind in kinds])
        none, layernorm, _ = map(statistics.median, zip(*times, strict=True))
        if layernorm >= 1.05 * none:
            saved.append(
                statistics.median((two - three) / (two - one) for one, two, three in times)
            )
    told = row("Does an update take less time?")[1]
    counts = [verdicts.count("shown"), verdicts.count("the opposite")]
    assert f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} " in told
    assert "{} faster, {} slower".format(*counts) in told
    assert f"({len(saved)}), RMSNorm saves {min(saved):.0%} to {max(saved):.0%}" in told


def test_the_time_that_one_process_measured_in_handwriting():
    rows = json.loads((RESULTS / "handwriting" / "report.json").read_text("utf-8"))["sections"][
        "speed"
    ]["rows"]
    (cells,) = (each for each in rows if each[0] == "RMSNorm")
    ratios = [float(cell.split()[0]) for cell in cells if "[" in cell]
    told = f"Handwriting, timed in one process only, takes {min(ratios):.2f} to {max(ratios):.2f}"
    assert len(ratios) == 4 and row("Does an update take less time?")[2].endswith(told)


def test_the_times_of_a_step_of_fit():
    figures = json.loads((TIMES / "fit.json").read_text("utf-8"))["figures"]

    def over(mode):
        return [
            tables.ratio(each[mode]["rmsnorm_tf"], each[mode]["keras RMSNormalization"])
            for each in figures.values()
            if mode in each
        ]

    default = over("default")
    compiled = over("jit_compile=True")
    assert f"takes {min(default):.2f} to {max(default):.2f} of its time with" in README
    assert f"[{min(compiled):.2f} to {max(compiled):.2f} compiled by XLA]" in README


def test_the_times_of_whole_keras_models():
    models = json.loads((TIMES / "fold.json").read_text("utf-8"))["figures"].values()

    def over(function):
        return [
            tables.ratio(each["seconds"]["after"], each["seconds"]["before"])
            for each in models
            if each["converts"] == function and each["converted"]
        ]

    replaced = over("replace_rms_norm")
    saved = [1 - ratio for ratio in over("fold_layer_norm")]
    assert (
        f"KerasHub's models took {min(replaced):.2f} to {max(replaced):.2f} of their time" in README
    )
    assert len(saved) == 9
    assert f"KerasHub take {min(saved):.0%} to {max(saved):.0%} less time" in README


def test_no_command_has_the_placeholder_of_the_address():
    assert "git.invalid" not in README
