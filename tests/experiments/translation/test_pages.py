"""The README and the remarks of the reports say what the logs of the experiments say."""

import json
import statistics
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from experiments.archive import read_archive
from experiments.reporting.intervals import signed, t_interval
from experiments.translation.corpus import read_corpus

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "experiments" / "results"
TEST = "test_2016_flickr"
README = " ".join((ROOT / "README.md").read_text("utf-8").split())


def runs(row, corpus="multi30k"):
    """Returns the log of each seed."""
    logs, found = read_archive(RESULTS / corpus), []
    while log := logs.get(f"{row}-{len(found) + 1}"):
        found.append(log)
    return found


def bleu(row, corpus="multi30k"):
    """Returns the BLEU of each seed on the test set."""
    return [run["tests"][TEST]["bleu"] for run in runs(row, corpus)]


def dev(row):
    """Returns the best BLEU of each seed on the dev set."""
    return [max(each["bleu"] for each in run["validations"]) for run in runs(row)]


def gains(one, other):
    """Returns the differences of the seeds that both have."""
    return [a - b for a, b in zip(one, other, strict=False)]


def updates():
    """Returns the times of updates in float32, by kind."""
    return read_archive(RESULTS / "multi30k")["times"]["updates"]["float32"]


@pytest.mark.parametrize(
    ("label", "row"),
    [
        ("LayerNorm", "layernorm"),
        ("RMSNorm", "rmsnorm"),
        ("pRMSNorm", "prmsnorm"),
        ("L2-Norm", "l2norm"),
        ("L2-Norm (gains from sqrt(n))", "l2norm-scaled"),
        ("none", "baseline"),
        ("LayerNorm (Adam epsilon 0.001)", "layernorm-recipe"),
        ("RMSNorm (Adam epsilon 0.001)", "rmsnorm-recipe"),
        ("none (Adam epsilon 0.001)", "none-recipe"),
    ],
)
def test_the_readme_has_the_bleu_and_the_options_of_each_row(label, row):
    options, found = runs(row)[0]["options"], bleu(row)
    figures = f"{len(found)} | {statistics.mean(found):.1f} (sd {statistics.stdev(found):.1f})"
    time = 1000 * statistics.median(updates()[options["layer_normalization_type"]]["rounds"])
    own = f"{options['learning_rate']:g} | {options['finish_after']:,} | {time:.0f}"
    assert f"| {label} | {figures} | {own} |" in README


def test_the_readme_has_the_interval_that_judges_equality():
    found = gains(bleu("rmsnorm"), bleu("layernorm"))
    assert f"RMSNorm minus LayerNorm is {signed(t_interval(found), 2)} BLEU" in README
    _, low, high = t_interval(found, 0.9)
    assert f"90% interval is [{low:+.2f}, {high:+.2f}]" in README
    assert f"So RMSNorm is at most {-low:.2f} BLEU worse, within the margin of 0.5 that was set in advance." in README
    assert f"It may be {high:.2f} better, so equality is not shown." in README
    assert -0.5 < low < 0 and high > 0.5


def test_the_readme_has_the_example_of_a_transformer():
    figures = json.loads((ROOT / "benchmarks" / "results" / "transformer_multi30k.json").read_text("utf-8"))
    at = {
        kind: next(each for each in found["validations"] if each["update"] == 6000) for kind, found in figures.items()
    }
    told = f"{at['rmsnorm']['test_bleu']:.1f} with RMSNorm and {at['layernorm']['test_bleu']:.1f} with LayerNorm"
    assert f"reaches a test BLEU of {told} (one seed) after 6,000 updates" in README


def remarks(corpus):
    """Returns the remarks of a report."""
    return " ".join(read_corpus(corpus).remarks)


def test_on_mnist_rmsnorm_has_the_lower_loss_with_every_equal_step_size():
    logs = read_archive(RESULTS / "mnist")
    cells = sorted(name.removeprefix("rmsnorm-") for name in logs if name.startswith("rmsnorm-") and "-step-" in name)
    assert len(cells) == 6

    def loss(kind, cell):
        return statistics.mean(each["loss"] for each in logs[f"{kind}-{cell}"]["train"])

    assert all(loss("rmsnorm", cell) < loss("layernorm", cell) for cell in cells)
    assert "with equal step sizes RMSNorm has the lower training loss in all six cells of the grid" in README


def test_the_remarks_on_the_centre_hold():
    def losses(kind, moved):
        return gains(dev(kind), dev(f"{kind}-centre{moved}"))

    told = remarks("multi30k")
    assert "RMSNorm loses in every seed, from the embeddings and from the other matrices." in told
    assert all(loss > 1 for moved in ("", "-embeddings", "-matrices") for loss in losses("rmsnorm", moved))
    assert "LayerNorm loses BLEU if the embeddings are moved, and hardly any if only the other matrices are" in told
    assert min(losses("layernorm", "-embeddings")) > 5 and max(map(abs, losses("layernorm", "-matrices"))) < 0.5
    assert "Neither part alone gives the paper's order." in told
    for moved in ("-embeddings", "-matrices"):
        pairs = gains(dev(f"rmsnorm-centre{moved}"), dev(f"layernorm-centre{moved}"))
        assert statistics.mean(pairs) < 0


def test_the_remarks_on_transformers_hold():
    def losses(row):
        return [each["train_loss"] for run in runs(row, "multi30k_transformer") for each in run["validations"]]

    logs = read_archive(RESULTS / "multi30k_transformer")
    grid = [log for name, log in logs.items() if name.startswith("post-none-step-")]
    assert len(grid) == 3
    assert min(losses("post-none") + [each["train_loss"] for run in grid for each in run["validations"]]) > 50
    told = remarks("multi30k_transformer")
    assert "the training loss is above 50 at every validation" in told
    small = losses("post-none-small-steps")
    assert f"it is {small[-1]:.0f} at the end and still falls" in told and small == sorted(small, reverse=True)
    below = gains(bleu("post-layernorm", "multi30k_transformer"), bleu("post-prmsnorm", "multi30k_transformer"))
    assert len(below) == 3 and min(below) > 0
    assert "pRMSNorm (post) is below LayerNorm (post) in every seed" in told
