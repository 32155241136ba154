"""The README: its figures are those of the kept logs, and what it promises is there."""

import configparser
import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks import layer_figures, tables
from experiments.reporting.intervals import median_interval, signed, t_interval

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
TIMES = ROOT / "benchmarks" / "results"
LINES = (ROOT / "README.md").read_text("utf-8").splitlines()
README = " ".join(" ".join(LINES).split())
MARGIN = 0.5


def answers(question):
    """Returns the cells of a row of the table of results: paper, ours and answer."""
    (row,) = (line for line in LINES if line.startswith(f"| {question}"))
    return [re.sub(r"\]\([^)]*\)", "]", cell.strip()) for cell in row.strip("|").split(" | ")][1:]


def scores(task, row, measure):
    """Returns the BLEU of each seed of a row, on the test set or the best on the dev set."""
    found, number = [], 1
    while (path := RESULTS / task / "logs" / f"{row}-{number}.json").exists():
        log = json.loads(path.read_text("utf-8"))
        dev = max(each["bleu"] for each in log["validations"])
        found.append(log["tests"]["test_2016_flickr"]["bleu"] if measure == "test" else dev)
        number += 1
    return found


def gains(task, row, other, measure="test"):
    """Returns the differences of the seeds that both rows have."""
    return [a - b for a, b in zip(scores(task, row, measure), scores(task, other, measure), strict=False)]


def claims(task):
    return json.loads((RESULTS / task / "report.json").read_text("utf-8"))["claims"]


def verdicts(task, of="RMSNorm"):
    """Returns the verdicts on quality that compare a kind with LayerNorm, and nothing else with it."""
    return [
        each["verdict"]
        for each in claims(task)
        if re.match(rf"{of}\b", each["claim"]) and "LayerNorm" in each["claim"] and "time" not in each["claim"]
    ]


def test_the_page_is_short():
    assert len(LINES) <= 120


@pytest.mark.parametrize(
    ("question", "task", "pairs"),
    [
        (
            "Does an [RNN]",
            "multi30k",
            {
                "{} BLEU;": ("rmsnorm", "layernorm"),
                "with Adam's epsilon at 0.001 {};": ("rmsnorm-recipe", "layernorm-recipe"),
                "pRMSNorm {}": ("prmsnorm", "layernorm"),
            },
        ),
        (
            "Does a [Transformer]",
            "multi30k_transformer",
            {
                "{} BLEU;": ("post-rmsnorm", "post-layernorm"),
                "trained longer {};": ("post-rmsnorm-longer", "post-layernorm-longer"),
                "pre-norm {};": ("pre-rmsnorm", "pre-layernorm"),
                "pRMSNorm {}": ("post-prmsnorm", "post-layernorm"),
            },
        ),
    ],
    ids=["RNN", "Transformer"],
)
def test_the_quality_in_translation_is_that_of_the_logs(question, task, pairs):
    _, ours, answer = answers(question)
    found = [gains(task, *pair) for pair in pairs.values()]
    assert ours == " ".join(text.format(signed(t_interval(each))) for text, each in zip(pairs, found, strict=True))
    nineties = [t_interval(each, 0.9) for each in found]
    assert not any(low > -MARGIN and high < MARGIN for _, low, high in nineties)
    below = all(statistics.mean(each) < 0 for each in found)
    assert answer == "not shown" + "; every mean is below" * below


def test_the_other_tasks_have_the_verdicts_of_their_reports():
    _, ours, _ = answers("Do networks for other tasks")
    assert "better in [CIFAR-10]" in ours
    assert verdicts("cifar10") == ["borne out"]
    (better,) = (each for each in claims("cifar10") if each["claim"] == "RMSNorm has a lower error than LayerNorm")
    assert better["verdict"] == "borne out"
    assert "as well in [skip-thoughts] and in two of four comparisons in [handwriting];" in ours
    assert all(verdict.startswith("borne out") for verdict in verdicts("skip_thoughts"))
    assert sorted(verdict.partition(":")[0] for verdict in verdicts("handwriting")) == [
        *["borne out"] * 2,
        *["not shown"] * 2,
    ]
    assert "not shown in [DRAW], [order embeddings] and the [reader]" in ours
    for task in ("draw", "order_embeddings", "reader"):
        assert all(verdict.startswith("not shown") for verdict in verdicts(task))
    assert "in [MNIST] the training loss is higher with batches of 128, and lower with batches of 4 and with" in ours
    assert verdicts("mnist") == ["not borne out: higher", "not borne out: lower"]


def test_on_mnist_rmsnorm_has_the_lower_loss_with_every_equal_learning_rate():
    logs = RESULTS / "mnist" / "logs"
    cells = sorted(path.name.removeprefix("rmsnorm-") for path in logs.glob("rmsnorm-batch-*-step-*.json"))
    assert len(cells) == 6

    def loss(kind, cell):
        found = json.loads((logs / f"{kind}-{cell}").read_text("utf-8"))
        return statistics.mean(each["loss"] for each in found["train"])

    assert all(loss("rmsnorm", cell) < loss("layernorm", cell) for cell in cells)
    assert "and with equal learning rates;" in answers("Do networks for other tasks")[1]


def updates():
    """Yields the seconds of each round by kind, for every model and mode that was measured with both norms."""
    for path in [*sorted(RESULTS.glob("*/logs/times.json")), *sorted(TIMES.glob("training_*.json"))]:
        log = json.loads(path.read_text("utf-8"))
        for modes in log.get("seconds", {}).values():
            yield from modes.values()
        for kinds in log.get("updates", {}).values():
            yield {kind: each["rounds"] for kind, each in kinds.items()}
    for path in sorted(TIMES.glob("widths*.json")):
        for of_widths in json.loads(path.read_text("utf-8"))["figures"].values():
            for each in of_widths.values():
                yield from each["seconds"].values()


def test_the_time_is_that_of_every_model_that_was_measured():
    measured = [each for each in updates() if {"rmsnorm", "layernorm"} <= set(each)]
    ratios = [median_interval(np.divide(each["rmsnorm"], each["layernorm"])) for each in measured]
    shorter, longer, judged = 0, 0, 0
    for each, ratio in zip(measured, ratios, strict=True):
        if again := each.get("layernorm, again") or each.get("layernorm 2"):
            noise = median_interval(np.divide(again, each["layernorm"]))
            judged += 1
            shorter += ratio.high < min(1, noise.low)
            longer += ratio.low > max(1, noise.high)
    middles = [ratio.middle for ratio in ratios]
    told = (
        f"{min(middles):.2f} to {max(middles):.2f} in {len(ratios)} measurements; of the {judged} with a second "
        f"LayerNorm, {shorter} show less time, {judged - shorter - longer} no difference and {longer} more"
    )
    assert answers("Does an update take less time?")[1].startswith(told)


def test_initial_weights_around_two_tenths():
    one, other = (statistics.mean(scores("multi30k", f"{kind}-centre", "dev")) for kind in ("rmsnorm", "layernorm"))
    found = signed(t_interval(gains("multi30k", "rmsnorm-centre", "layernorm-centre", "dev")))
    assert answers("Does RMSNorm bear")[1:] == [f"dev BLEU {one:.1f} against {other:.1f}: {found}", "no, worse"]


def test_no_norm_and_l2_norm():
    _, ours, _ = answers("Do models without a norm")
    none, l2norm, scaled = (
        signed(t_interval(gains("multi30k", *pair)))
        for pair in (("rmsnorm-recipe", "none-recipe"), ("rmsnorm", "l2norm"), ("rmsnorm", "l2norm-scaled"))
    )
    assert f"RMSNorm minus the model without a norm: {none} BLEU with Adam's epsilon at 0.001" in ours
    assert f"minus L2-Norm: {l2norm}, but {scaled} if L2-Norm's gains begin at sqrt(n)" in ours
    assert max(scores("multi30k", "baseline", "test")) < 5
    assert max(scores("multi30k_transformer", "post-none", "dev")) < 0.05
    assert "with 1e-8 it does not learn, and no Transformer without a norm does" in ours


def test_the_times_of_the_layer():
    place = {"operation": "norm", "shape": [4096, 1024], "dtype": "float32", "passes": "forward+backward"}
    found = {
        each["mode"]: f"{tables.ratio(each['seconds'][layer_figures.OURS], each['seconds'][layer_figures.KERAS]):.2f}"
        for each in json.loads((TIMES / "layer.json").read_text("utf-8"))["figures"]
        if place.items() <= each.items()
    }
    told = "take {eager} (eager), {tf.function} (`tf.function`) and {xla} (XLA) of the time of"
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
