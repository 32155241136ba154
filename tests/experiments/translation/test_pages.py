"""The README says what the logs of the experiments say."""

import json
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "experiments" / "results" / "multi30k"
TEST = "test_2016_flickr"
SEEDS = {"layernorm": 5, "rmsnorm": 5, "prmsnorm": 3, "l2norm": 3, "l2norm-scaled": 3, "baseline": 5}
STUDENT = {3: 4.302653, 5: 2.776445}  # the 97.5% quantile of Student's t for the mean of this many values
README = " ".join((ROOT / "README.md").read_text("utf-8").split())


def runs(row):
    """Returns the log of each seed."""
    return [json.loads((KEPT / "logs" / f"{row}-{seed + 1}.json").read_text("utf-8")) for seed in range(SEEDS[row])]


def bleu(row):
    """Returns the BLEU of each seed on the test set."""
    return [run["tests"][TEST]["bleu"] for run in runs(row)]


def paired(one, other):
    """Returns a mean difference and its 95% interval, as the pages write it."""
    both = min(SEEDS[one], SEEDS[other])
    gains = [a - b for a, b in zip(bleu(one)[:both], bleu(other)[:both], strict=True)]
    middle, half = statistics.mean(gains), STUDENT[len(gains)] * statistics.stdev(gains) / len(gains) ** 0.5
    return f"{middle:+.1f} [{middle - half:+.1f}, {middle + half:+.1f}]"


def updates():
    """Returns the times of updates in float32, by kind."""
    return json.loads((KEPT / "logs" / "times.json").read_text("utf-8"))["updates"]["float32"]


def savings(kind):
    """Returns the share of LayerNorm's time that a kind saves in each round."""
    return [1 - a / b for a, b in zip(updates()[kind]["rounds"], updates()["layernorm"]["rounds"], strict=True)]


@pytest.mark.parametrize(
    ("label", "row"),
    [
        ("LayerNorm", "layernorm"),
        ("RMSNorm", "rmsnorm"),
        ("pRMSNorm", "prmsnorm"),
        ("L2-Norm", "l2norm"),
        ("L2-Norm, gains from sqrt(n)", "l2norm-scaled"),
        ("none", "baseline"),
    ],
)
def test_the_readme_has_the_bleu_the_step_size_and_the_time_of_each_row(label, row):
    options = runs(row)[0]["options"]
    figures = f"{SEEDS[row]} | {statistics.mean(bleu(row)):.1f} (sd {statistics.stdev(bleu(row)):.1f})"
    time = 1000 * statistics.median(updates()[options["layer_normalization_type"]]["rounds"])
    assert f"| {label} | {figures} | {options['learning_rate']:g} | {time:.0f} |" in README


@pytest.mark.parametrize(
    ("label", "one", "other"),
    [
        ("RMSNorm minus LayerNorm", "rmsnorm", "layernorm"),
        ("pRMSNorm minus LayerNorm", "prmsnorm", "layernorm"),
        ("RMSNorm minus L2-Norm", "rmsnorm", "l2norm"),
    ],
)
def test_the_readme_has_the_paired_differences(label, one, other):
    assert f"{label} is {paired(one, other)}" in README


def test_the_readme_has_the_interval_that_judges_equality():
    gains = [a - b for a, b in zip(bleu("rmsnorm"), bleu("layernorm"), strict=True)]
    middle, half = statistics.mean(gains), 2.131847 * statistics.stdev(gains) / 5**0.5  # Student's t, the 95% quantile
    assert f"Its 90% interval is [{middle - half:+.2f}, {middle + half:+.2f}]" in README


def test_the_readme_has_the_saving_of_the_report():
    claims = json.loads((KEPT / "report.json").read_text("utf-8"))["claims"]
    (told,) = (claim["ours"] for claim in claims if "an update with RMSNorm takes less time" in claim["claim"])
    assert f"takes {told.removesuffix(' less, one run')} less time than with LayerNorm" in README
    assert told.startswith(f"{statistics.median(savings('rmsnorm')):.1%} ")
