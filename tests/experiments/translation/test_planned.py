"""Nothing of the plan is judged before all its seeds are there."""

import json

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.archive import write_archive
from experiments.translation.corpus import read_corpus
from experiments.translation.place import Place
from experiments.translation.plan import read_rows, seed_runs
from experiments.translation.planned import CORPORA, report
from experiments.translation.runs import Training, portable


def logs(tmp_path, corpus, bleu, last_seed):
    """Returns the logs of a corpus up to a seed; `bleu` maps kind and seed to the value on all test sets."""
    read, found = read_corpus(corpus), {}
    for run in seed_runs(dict.fromkeys(read.adapt(read_rows())), read.seeds):
        if run.seed <= last_seed:
            value = bleu(run.row.kind, run.seed)
            found[run.name] = {
                "options": portable(Training(run, read, Place(corpus, tmp_path)).given),
                "centre": 0.0,
                "moved": "all",
                "step_size_chosen": False,
                "tests": {name: {"bleu": value, "chrf": value} for name in read.tests},
                "validations": [{"update": 1, "bleu": value, "valid_loss": 2.0 + run.seed / 1e4, "seconds": 9.0}],
            }
    return found


def bleu(kind, seed):
    """RMSNorm is within 0.1 of LayerNorm, and pRMSNorm 1 below."""
    return 30 + seed % 3 + {"layernorm": 0, "rmsnorm": (seed % 2) / 10, "prmsnorm": -1 + (seed % 2) / 10}[kind]


def verdicts(tmp_path, found):
    write_archive(tmp_path, found)
    made = json.loads((report(tmp_path, tmp_path / "work") / "report.json").read_text())
    return {each["claim"]: each["verdict"].partition(":")[0] for each in made["claims"]}


@pytest.mark.parametrize("missing", [0, 1])
def test_a_claim_is_judged_when_all_its_seeds_are_there(missing, tmp_path):
    found = verdicts(tmp_path, logs(tmp_path, "multi30k_rnn", bleu, 108 - missing))
    waits = "not judged before all seeds are there"
    of_rnn = {
        "P1: RMSNorm is not worse than LayerNorm, RNN": "shown",
        "P2: RMSNorm is equal to LayerNorm, RNN": "shown",
        "pRMSNorm is not worse than LayerNorm, RNN": "not shown",
        "pRMSNorm is equal to LayerNorm, RNN": "not shown",
    }
    assert {name: found[name] for name in of_rnn} == (dict.fromkeys(of_rnn, waits) if missing else of_rnn)
    assert {verdict for name, verdict in found.items() if "Transformer" in name} == {waits}


def test_the_plan_has_its_trainings_with_seeds_from_101_on():
    runs = {}
    for name in CORPORA:
        corpus = read_corpus(name)
        runs[name] = list(seed_runs(dict.fromkeys(corpus.adapt(read_rows())), corpus.seeds))
        assert corpus.options["valid_metric"] == "loss"
    assert {name: len(found) for name, found in runs.items()} == {
        "multi30k_rnn": 24,
        "multi30k_pre": 13,
        "multi30k_post": 12,
    }
    assert [run.seed for run in runs["multi30k_rnn"]] == [seed for seed in range(101, 109) for _ in range(3)]
    assert {run.seed for found in runs.values() for run in found} == set(range(101, 109))
