"""The README: its figures are those of the kept logs, and what it promises is there."""

import configparser
import gzip
import json
import re
import statistics
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from benchmarks import tables
from experiments.reporting.speed import AGAIN, Timed
from experiments.reporting.speed import told as with_interval

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
TIMES = ROOT / "benchmarks" / "results"
LINES = (ROOT / "README.md").read_text("utf-8").splitlines()
README = " ".join(" ".join(LINES).split())
DIFFERENCE = re.compile(r"[+-][\d.]+ \[[^\]]+\]")


def answers(question):
    """Returns the cells of a row of the table of results: paper, ours and answer."""
    (row,) = (line for line in LINES if line.startswith(f"| {question}"))
    return [re.sub(r"\]\([^)]*\)", "]", cell.strip()) for cell in row.strip("|").split(" | ")][1:]


def claims(task=None):
    """Returns (ours, verdict) of the claims that the kept reports judge, of one task or of all."""
    paths = RESULTS.glob(f"{task or '*'}/report.json")
    return [(each["ours"], each["verdict"]) for path in paths for each in json.loads(path.read_text("utf-8"))["claims"]]


def logs(task):
    """Returns the logs of a kept report by name."""
    archive = RESULTS / task / "logs.json.gz"
    if archive.exists():
        return json.loads(gzip.decompress(archive.read_bytes()))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in (RESULTS / task / "logs").glob("*.json")}


def test_the_page_is_short():
    assert len(LINES) <= 120


def test_the_table_has_six_rows_with_figures_of_the_kept_reports():
    """Every difference with its interval is that of a claim, and the answer is no better than its verdict."""
    start = LINES.index("| question | paper | ours | answer |")
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in LINES[start + 2 : start + 8]]
    assert all(len(row) == 4 for row in rows) and not LINES[start + 8].startswith("|")
    found = [(difference, row[3]) for row in rows for difference in DIFFERENCE.findall(row[2])]
    assert len(found) >= 4
    for difference, answer in found:
        verdicts = [verdict for ours, verdict in claims() if difference in ours]
        assert verdicts, difference
        # Nothing is promised in a row whose claims are all open.
        of_row = [verdict for other, each in found if each == answer for ours, verdict in claims() if other in ours]
        assert answer.startswith("not shown") == all(verdict.startswith("not shown") for verdict in of_row)


def test_the_other_tasks_have_the_verdicts_of_their_reports():
    def shown(task, words="learns as fast as"):
        """Returns for each claim that RMSNorm is as good as LayerNorm whether it is shown."""
        found = json.loads((RESULTS / task / "report.json").read_text("utf-8"))["claims"]
        return [each["verdict"].startswith("shown") for each in found if each["claim"].startswith(f"RMSNorm {words}")]

    _, ours, _ = answers("Do networks for other tasks")
    assert "as fast in [skip-thoughts] and one of two settings of [handwriting]," in ours
    assert shown("skip_thoughts") == [True] and sorted(shown("handwriting")) == [False, True]
    assert "with the same test error in the [reader];" in ours
    assert shown("reader", "ends with the error of LayerNorm") == [True]
    assert "not shown in [DRAW]" in ours and shown("draw") == [False]


def test_the_table_says_what_the_plan_shows_of_transformers():
    planned = {
        each["claim"]: each for each in json.loads((RESULTS / "planned" / "report.json").read_text("utf-8"))["claims"]
    }
    pre = planned["RMSNorm is not worse than LayerNorm, Transformer, pre-norm"]
    post = planned["RMSNorm is equal to LayerNorm, Transformer, post-norm"]
    assert post["verdict"].startswith("shown: ") and post["ours"].endswith(" BLEU, 6 seeds")
    _, ours, answer = answers("Does a [Transformer]")
    assert f"in the 6 pairs of [the plan]: {post['ours'].removesuffix(', 6 seeds')}." in ours
    assert f"Norms before each function, 5 pairs: {pre['ours'].removesuffix(', 5 seeds')}" in ours
    low = re.match(r"not shown: 90% interval \[-([\d.]+), -", pre["verdict"])[1]
    assert answer == f"post-norm: yes, equal within ±0.5; pre-norm: not shown: RMSNorm may be worse, by {low}"


def test_the_table_says_what_the_plan_shows_of_the_rnn():
    found = json.loads((RESULTS / "planned" / "report.json").read_text("utf-8"))["claims"]
    claims = [each for each in found if each["claim"].endswith("LayerNorm, RNN")]
    corrected = "not shown after Holm's correction"
    assert [each["verdict"].partition(":")[0] for each in claims] == ["shown", "not shown", corrected, corrected]
    assert all(each["ours"].endswith(", 8 seeds") for each in claims)
    both = " BLEU; pRMSNorm ".join(claims[i]["ours"].partition(" BLEU")[0] for i in (0, 2))
    assert f"8 pairs of [the plan]: {both}." in answers("Does an [RNN]")[1]
    high = re.search(r", \+([\d.]+)\], margin", claims[1]["verdict"])[1]
    assert answers("Does an [RNN]")[2] == (
        f"yes: RMSNorm is not worse, and may be better, by {high}. pRMSNorm: {corrected}"
    )


def test_on_mnist_rmsnorm_has_the_lower_loss_with_every_equal_learning_rate():
    found = logs("mnist")
    cells = sorted(name.removeprefix("rmsnorm-") for name in found if re.match("rmsnorm-batch-.*-step-", name))
    assert len(cells) == 6

    def loss(kind, cell):
        return statistics.mean(each["loss"] for each in found[f"{kind}-{cell}"]["train"])

    assert all(loss("rmsnorm", cell) < loss("layernorm", cell) for cell in cells)
    assert "and with equal learning rates;" in answers("Do networks for other tasks")[1]


def test_what_does_not_learn_without_a_norm():
    def best(task, row):
        found = [log for name, log in logs(task).items() if re.fullmatch(rf"{row}-\d+", name)]
        return max(each["bleu"] for log in found for each in log["validations"])

    assert best("multi30k", "baseline") < 5
    assert best("multi30k_transformer", "post-none") < 0.05
    assert "with 1e-8 it does not learn, and no Transformer without a norm does" in answers("Do models without")[1]


def updates():
    """Yields the seconds of each round by kind in each process, for every model and mode that was measured."""
    kept = [logs(folder.name).get("times") for folder in sorted(RESULTS.iterdir()) if folder.is_dir()]
    trained = [json.loads(path.read_text("utf-8")) for path in sorted(TIMES.rglob("training_*.json"))]
    for log in filter(None, [*kept, *trained]):
        processes = log.get("processes", [log])
        for setting, modes in processes[0].get("seconds", {}).items():
            yield from ([each["seconds"][setting][mode] for each in processes] for mode in modes)
        for system in processes[0].get("updates", {}):
            if system != "Nematus":
                kinds = [each["updates"][system] for each in processes]
                yield [{kind: found["rounds"] for kind, found in each.items()} for each in kinds]
    for path in sorted((TIMES / "once").glob("widths*.json")):
        for of_widths in json.loads(path.read_text("utf-8"))["figures"].values():
            for each in of_widths.values():
                yield from ([seconds] for seconds in each["seconds"].values())


def test_the_time_is_that_of_every_model_that_was_measured():
    """By the rule of the reports."""
    second = {"layernorm 2": AGAIN}
    named = ([{second.get(kind, kind): each[kind] for kind in each} for each in processes] for processes in updates())
    timed = [Timed("", each) for each in named if {"rmsnorm", "layernorm"} <= set(each[0])]
    middles = [each.ratio("rmsnorm").middle for each in timed]
    verdicts = [each.verdict("rmsnorm") for each in timed if AGAIN in each.processes[0]]
    shown, more, neither = (
        sum(each.startswith(verdict) for each in verdicts) for verdict in ("shown", "the opposite", "not shown")
    )
    sections = json.loads((RESULTS / "multi30k" / "report.json").read_text("utf-8"))["sections"]
    judged = sections["speed"]["data"]["judged"]
    (rnn,) = (with_interval(each["ratio"]) for each in judged if each["kind"] == "RMSNorm")
    told = (
        f"{min(middles):.2f} to {max(middles):.2f} in {len(middles)} measurements; of the {len(verdicts)} with a "
        f"second LayerNorm, {shown} show less time ({verdicts.count('shown')} in five processes), {more} more and "
        f"{neither} neither; the RNN of translation takes {rnn}"
    )
    assert answers("Does an update take less time?")[1].startswith(told)


def test_the_times_of_the_layer():
    place = {"operation": "norm", "shape": [4096, 1024], "dtype": "float32", "passes": "forward+backward"}
    found = {
        each["mode"]: f"{tables.ratio(each['seconds'][tables.OURS], each['seconds'][tables.KERAS]):.2f}"
        for each in json.loads((TIMES / "layer.json").read_text("utf-8"))["figures"]
        if place.items() <= each.items()
    }
    told = "take {tf.function} (`tf.function`) and {xla} (XLA) of the time of"
    for mode, ratio in found.items():
        told = told.replace(f"{{{mode}}}", ratio)
    assert told in README


def test_the_times_of_whole_keras_models():
    models = json.loads((TIMES / "fold.json").read_text("utf-8"))["figures"].values()

    def over(function):
        return [
            tables.ratio(each["seconds"]["after"], each["seconds"]["before"])
            for each in models
            if each["converts"] == function and each["converted"]
        ]

    replaced, saved = over("replace_rms_norm"), [1 - ratio for ratio in over("fold_layer_norm")]
    assert f"took {min(replaced):.2f} to {max(replaced):.2f} of its time with our layer" in README
    assert len(saved) == 9
    assert f"Nine models of KerasHub take {min(saved):.0%} to {max(saved):.0%} less time in inference" in README


def test_the_address_of_the_repository_is_the_same_everywhere():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    (address,) = re.findall(r"^repo_url: (\S+)", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert config["metadata"]["url"] == address
    assert f"git clone {address} " in README
