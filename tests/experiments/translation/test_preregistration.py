"""The reports on the plans: their claims, over made-up logs."""

import json
import math
from functools import partial

import pytest

from experiments.translation import task
from experiments.translation.baseline import Store
from experiments.translation.corpus import read_corpus
from experiments.translation.preregistrations import PREREGISTRATIONS, preregistration_of
from experiments.translation.runs import CorpusRun, portable
from experiments.translation.schedule import read_conditions, seed_runs
from nmt.errors import UserError

WAITS = "not judged before all seeds are there"
PRE_NORM = "multi30k_pre_norm"


def runs_of(corpus):
    read = read_corpus(corpus)
    return list(seed_runs(dict.fromkeys(read.select(read_conditions())), read.seeds))


def write_logs(root, corpus, value, last_seed=999):
    """Writes logs up to a seed; `value` maps a kind and a seed to BLEU and the training loss."""
    store = Store(corpus, root)
    read = read_corpus(corpus)
    for run in runs_of(corpus):
        if run.seed <= last_seed:
            bleu, loss = value(run.condition.name.removeprefix(f"{corpus}-"), run.seed)
            validation = {
                "update": 1,
                "bleu": bleu,
                "valid_loss": 2.0 + run.seed / 1e4,
                "seconds": 9.0,
            }
            log = {
                "options": portable(CorpusRun(run, read, store).given),
                "centre": 0.0,
                "moved": "all",
                "step_size_chosen": False,
                "tests": {name: {"bleu": bleu, "chrf": bleu} for name in read.tests},
                "validations": [{**validation, "train_loss": loss}],
            }
            store.write(run.name, log)


def read_report(plan, root):
    return json.loads((PREREGISTRATIONS[plan].report(root) / "report.json").read_text())


def verdicts(report):
    return {each["claim"]: each["verdict"].partition(":")[0] for each in report["claims"]}


def of_rnn(kind, seed):
    """RMSNorm is within 0.1 of LayerNorm, and pRMSNorm 1 below."""
    return 30 + seed % 3 + {
        "layernorm": 0,
        "rmsnorm": (seed % 2) / 10,
        "prmsnorm": -1 + (seed % 2) / 10,
    }[kind], 2.0


@pytest.mark.parametrize("missing", [0, 1])
def test_a_claim_is_judged_when_all_its_seeds_are_there(missing, tmp_path):
    write_logs(tmp_path, "multi30k_rnn", of_rnn, 108 - missing)
    report = read_report("planned", tmp_path)
    found = verdicts(report)
    expected = {
        "P1: RMSNorm is not worse than LayerNorm, RNN": "shown",
        "P2: RMSNorm is equal to LayerNorm, RNN": "shown",
        # Transformers of the family wait.
        "pRMSNorm is not worse than LayerNorm, RNN": "provisional",
        "pRMSNorm is equal to LayerNorm, RNN": "provisional",
    }
    assert {name: found[name] for name in expected} == (
        dict.fromkeys(expected, WAITS) if missing else expected
    )
    assert {verdict for name, verdict in found.items() if "Transformer" in name} == {WAITS}
    conditions = report["sections"]["measures"]["rows"]
    if missing:
        assert conditions == []
    else:
        assert [condition[0] for condition in conditions] == [
            "RMSNorm minus LayerNorm, RNN",
            "pRMSNorm minus LayerNorm, RNN",
        ]
        assert (
            conditions[0][1:3] == ["+0.050 [+0.005, +0.095], 4 of 8 higher".join(["**"] * 2)] * 2
        )  # BLEU and chrF


def test_a_verdict_says_at_which_level_the_kinds_are_compared(tmp_path):
    write_logs(tmp_path, "multi30k_rnn", of_rnn)
    claims = {each["claim"]: each["verdict"] for each in read_report("planned", tmp_path)["claims"]}
    equal = claims["P2: RMSNorm is equal to LayerNorm, RNN"]
    assert equal.startswith("shown: ") and "; LayerNorm at 31 BLEU" in equal


def of_biases(kind, seed, both=0.0):
    """Biases lower RMSNorm's loss by 0.01; with them it is above LayerNorm's by `both`."""
    loss = {"rmsnorm-biases": -0.01, "layernorm-biases": -0.01 - both}.get(kind, 0)
    return 30.0, 2 + seed / 100 + loss + 0.001 * (len(kind) * seed % 3)


@pytest.mark.parametrize(
    ("both", "last_seed", "verdict"),
    [(0, 504, "shown"), (0.02, 504, "not shown"), (0, 503, WAITS)],
)
def test_biases_are_judged_against_the_margin(both, last_seed, verdict, tmp_path):
    write_logs(tmp_path, "multi30k_biases", partial(of_biases, both=both), last_seed)
    first, second = verdicts(read_report("multi30k_biases", tmp_path)).values()
    assert first == (WAITS if verdict == WAITS else "shown") and second == verdict


def of_pre_norm(kind, seed, offset=-0.012, centring=0.01):
    """The offset lowers the loss by 0.012, centring raises it by 0.01.

    Centred positions do nothing.
    """
    parts = {
        "layernorm": offset + centring,
        "layernorm-no-offset": centring,
        "rmsnorm": 0,
        "rmsnorm-offset": offset,
        "rmsnorm-centred-positions": 0.01 * (-1) ** seed,
    }
    return 30.0, 2 + seed / 100 + parts[kind] + 0.001 * (len(kind) * seed % 3)


def test_the_causes_are_judged_by_the_training_loss_after_all_trainings(tmp_path):
    write_logs(tmp_path, PRE_NORM, of_pre_norm)
    report = read_report(PRE_NORM, tmp_path)
    assert verdicts(report) == {
        "C1: the offset lowers the loss": "shown",
        "C2: centring lowers the loss": "the opposite",
        "C3: centred positions lower the loss": "not shown",
    }
    c1 = []
    for seed in range(301, 305):
        with_offset = [of_pre_norm(kind, seed)[1] for kind in ("rmsnorm-offset", "layernorm")]
        without = [of_pre_norm(kind, seed)[1] for kind in ("rmsnorm", "layernorm-no-offset")]
        c1.append((sum(with_offset) - sum(without)) / 2)
    assert report["sections"]["differences"]["data"][0]["differences"] == pytest.approx(c1)
    assert [
        condition[0].partition(":")[0] for condition in report["sections"]["measures"]["rows"]
    ] == [
        "C1",
        "C2",
        "C3",
        "RMSNorm with an offset minus RMSNorm",
        "LayerNorm minus LayerNorm without offset",
        "LayerNorm minus RMSNorm with an offset",
        "LayerNorm without offset minus RMSNorm",
        "RMSNorm minus LayerNorm",
        "Interaction",
    ]


def test_no_cause_is_judged_while_one_training_is_missing(tmp_path):
    write_logs(tmp_path, PRE_NORM, of_pre_norm)
    (Store(PRE_NORM, tmp_path).logs / f"{PRE_NORM}-rmsnorm-centred-positions-304.json").unlink()
    report = read_report(PRE_NORM, tmp_path)
    assert (
        set(verdicts(report).values()) == {WAITS}
        and report["about"][-1] == "19 of 20 trainings are done."
    )


def test_a_training_that_diverged_shows_nothing_of_its_cause(tmp_path):
    def diverged(kind, seed):
        return 30.0, math.nan if (kind, seed) == (
            "rmsnorm-centred-positions",
            302,
        ) else of_pre_norm(kind, seed)[1]

    write_logs(tmp_path, PRE_NORM, diverged)
    assert list(verdicts(read_report(PRE_NORM, tmp_path)).values()) == [
        "shown",
        "the opposite",
        "not shown",
    ]


@pytest.mark.parametrize("missing", [0, 1])
def test_an_offset_in_longer_trainings_is_explored_in_every_measure_when_all_its_seeds_are_there(
    missing, tmp_path
):
    levels = {"layernorm": 33, "rmsnorm": 32, "prmsnorm": 31, "rmsnorm-offset": 35}
    write_logs(tmp_path, "multi30k_pre", lambda kind, seed: (levels[kind], levels[kind] / 10))
    if missing:
        (Store("multi30k_pre", tmp_path).logs / "multi30k_pre-rmsnorm-offset-105.json").unlink()
    conditions = {
        condition[0]: condition[1:]
        for condition in read_report("planned", tmp_path)["sections"]["measures"]["rows"]
    }
    found = {
        name: cells
        for name, cells in conditions.items()
        if name.startswith("RMSNorm with an offset minus ")
    }
    if missing:
        assert "RMSNorm minus LayerNorm, Transformer, pre-norm" in conditions and not found
    else:
        for other, bleu in (("LayerNorm", 2), ("RMSNorm", 3)):
            cells = found[f"RMSNorm with an offset minus {other}, Transformer, pre-norm"]
            means = [cell.strip("*").split()[0] for cell in cells]
            assert means == [f"+{bleu}.000", f"+{bleu}.000", "+0.0000", f"+{bleu / 10:.4f}"]


def test_a_corpus_of_a_plan_is_reported_with_the_plan(tmp_path, capsys):
    write_logs(tmp_path, "multi30k_rnn", of_rnn)
    for data in ("multi30k_rnn", "planned"):
        task.reproduce(data, so_far=True, root=tmp_path)
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("P1: RMSNorm is not worse than LayerNorm, RNN: +0.05 ")
        assert lines[-1] == f"wrote {tmp_path / 'runs' / 'report' / 'report.md'}"
    with pytest.raises(UserError, match=f"no training on {PRE_NORM} is done yet"):
        task.reproduce(PRE_NORM, so_far=True, root=tmp_path)
    assert preregistration_of("demo") is None


def test_the_plan_has_its_trainings_with_seeds_from_101_on():
    runs = {name: runs_of(name) for name in PREREGISTRATIONS["planned"].corpora}
    assert {read_corpus(name).options["valid_metric"] for name in runs} == {"loss"}
    assert {name: len(found) for name, found in runs.items()} == {
        "multi30k_rnn": 24,
        "multi30k_post": 12,
        "multi30k_pre": 18,
    }
    assert [run.seed for run in runs["multi30k_rnn"]][::3] == list(range(101, 109))
    assert [run.seed for run in runs_of(PRE_NORM)][::5] == list(range(301, 305))
