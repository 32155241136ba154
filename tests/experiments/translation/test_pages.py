"""The remarks of the reports say what the logs of the experiments say."""

import statistics
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from experiments.archive import read_archive
from experiments.translation.corpus import read_corpus

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "experiments" / "results"
TEST = "test_2016_flickr"


def runs(condition, corpus="multi30k"):
    """Returns the log of each seed."""
    logs = read_archive(RESULTS / corpus)
    found = []
    while log := logs.get(f"{condition}-{len(found) + 1}"):
        found.append(log)
    return found


def bleu(condition, corpus="multi30k"):
    """Returns the BLEU of each seed on the test set."""
    return [run["tests"][TEST]["bleu"] for run in runs(condition, corpus)]


def dev(condition):
    """Returns the best BLEU of each seed on the dev set."""
    return [max(each["bleu"] for each in run["validations"]) for run in runs(condition)]


def gains(one, other):
    """Returns the differences of the seeds that both have."""
    return [a - b for a, b in zip(one, other, strict=False)]


def remarks(corpus):
    """Returns the remarks of a report."""
    return " ".join(read_corpus(corpus).remarks)


def test_the_remarks_on_the_centre_hold():
    def losses(kind, moved):
        return gains(dev(kind), dev(f"{kind}-centre{moved}"))

    told = remarks("multi30k")
    assert "RMSNorm loses in every seed, from the embeddings and from the other matrices." in told
    assert all(
        loss > 1 for moved in ("", "-embeddings", "-matrices") for loss in losses("rmsnorm", moved)
    )
    assert (
        "LayerNorm loses BLEU if the embeddings are moved, and hardly any if only the other matrices are"
        in told
    )
    assert (
        min(losses("layernorm", "-embeddings")) > 5
        and max(map(abs, losses("layernorm", "-matrices"))) < 0.5
    )
    assert "Neither part alone gives the paper's order." in told
    for moved in ("-embeddings", "-matrices"):
        pairs = gains(dev(f"rmsnorm-centre{moved}"), dev(f"layernorm-centre{moved}"))
        assert statistics.mean(pairs) < 0


def test_the_remarks_on_transformers_hold():
    def losses(condition):
        return [
            each["train_loss"]
            for run in runs(condition, "multi30k_transformer")
            for each in run["validations"]
        ]

    logs = read_archive(RESULTS / "multi30k_transformer")
    grid = [log for name, log in logs.items() if name.startswith("post-none-step-")]
    assert len(grid) == 3
    assert (
        min(
            losses("post-none")
            + [each["train_loss"] for run in grid for each in run["validations"]]
        )
        > 50
    )
    told = remarks("multi30k_transformer")
    assert "the training loss is above 50 at every validation" in told
    small = losses("post-none-small-steps")
    assert f"it is {small[-1]:.0f} at the end and still falls" in told and small == sorted(
        small, reverse=True
    )
    below = gains(
        bleu("post-layernorm", "multi30k_transformer"),
        bleu("post-prmsnorm", "multi30k_transformer"),
    )
    assert len(below) == 3 and min(below) > 0
    assert "pRMSNorm (post) is below LayerNorm (post) in every seed" in told
