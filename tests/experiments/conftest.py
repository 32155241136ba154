"""Results as if trainings had left them."""

import pytest

from experiments.results import Result
from experiments.row import Row

TESTS = ("news", "web")


def make_result(row, seed=1, bleu=(10.0, 20.0, 15.0), **log):
    """Returns a result with a validation of each BLEU, and BLEU on the test sets 1 and 2 below the best."""
    options = {"state_size": 32, "embedding_size": 16}
    validations = [{"update": 100 * number, "bleu": value} for number, value in enumerate(bleu, 1)]
    tests = {name: {"bleu": max(bleu) - below, "signature": "nrefs:1"} for below, name in enumerate(TESTS, 1)}
    whole = {"options": options, "validations": validations, "tests": tests, "skipped": 0, **log}
    return Result(row, seed, whole, {name: ["one two three"] for name in TESTS})


ROWS = {
    "none": Row("baseline", "Baseline", kind="none", seeds=2),
    "layernorm": Row("layernorm", "LayerNorm", kind="layernorm"),
    "rmsnorm": Row("rmsnorm", "RMSNorm", kind="rmsnorm"),
    "prmsnorm": Row("prmsnorm", "pRMSNorm", kind="prmsnorm"),
    "mine": Row("mine", "Mine", build=lambda name: None),
    "half": Row("half", "a half", build=lambda name: None, section="partial", partial=0.5),
    "moved": Row("moved", "RMSNorm, elsewhere", kind="rmsnorm", section="centre", centre=0.25),
}


@pytest.fixture
def results():
    """Every row once, the Baseline with two seeds."""
    second = make_result(ROWS["none"], seed=2, bleu=(14.0, 24.0))
    return [*(make_result(row) for row in ROWS.values()), second]


@pytest.fixture
def times():
    """As benchmarks/training.py writes them: RMSNorm takes 0.75 of LayerNorm's time."""
    rounds = {
        "none": [0.5, 0.5, 0.5],
        "layernorm": [1.0, 2.0, 0.5],
        "rmsnorm": [0.75, 1.5, 0.25],
        "prmsnorm": [0.5] * 3,
    }
    updates = {
        kind: {
            "rounds": found,
            "seconds": sorted(found)[1],
            "seconds_quartiles": [sorted(found)[1], sorted(found)[1] + 0.5],
            "ratio": sorted(found)[1] / 0.5,
        }
        for kind, found in rounds.items()
    }
    return {"cores": 2, "widths": [8, 12], "updates": {"float32": updates}}
