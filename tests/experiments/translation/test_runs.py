import itertools
import json

import pytest

from experiments.reporting.speed import PROCESSES
from experiments.translation import runs
from experiments.translation.condition import Condition, Run
from experiments.translation.corpus import prepare
from experiments.translation.runs import (
    SECOND_LAYERNORM,
    CorpusRun,
    make,
    make_all,
    measure_seconds,
)
from nmt.errors import UserError

RUN = Run(Condition("rmsnorm", "RMSNorm", kind="rmsnorm"), 1)
MOVED = Run(
    Condition("moved", "elsewhere", kind="layernorm", centre=0.2, options={"learning_rate": 0.5}), 2
)


def logged(run, corpus, store):
    """Returns the log of a run, or `None`."""
    return store.read(CorpusRun(run, corpus, store))


@pytest.fixture
def commands(corpus, store, ran):
    """The commands that are run once the text is in place."""
    prepare(corpus, store)
    ran.clear()
    return ran


def names(commands):
    return [" ".join(command[1:3]).partition(" -")[0] for command in commands]


def test_a_run_is_trained_and_tested_and_leaves_a_log(corpus, store, commands, tmp_path):
    assert logged(RUN, corpus, store) is None
    assert make_all([RUN], corpus, store) == {}
    assert names(commands) == [
        "nmt train",
        "nmt translate",
        "experiments.translation.inside.mean_shares",
    ]
    log = logged(RUN, corpus, store)
    assert [log["tests"]["news"][metric] for metric in ("bleu", "chrf")] == pytest.approx(
        [100, 100]
    )
    assert log["tests"]["news"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert (log["commit"], log["centre"]) == ("0123456789ab", 0)
    assert log["mean_share"]["20"] == {"encoder.norm": 0.5}
    assert log["options"]["dictionaries"] == ["source.model", "target.model"]
    assert str(tmp_path) not in json.dumps(log)
    # The models of all validations are kept until they are measured.
    assert dict(itertools.pairwise(commands[0]))["--keep"] == "40"
    assert not (store.model(RUN) / "kept").exists()


def test_another_centre_is_set_once(corpus, store, commands):
    log = make(CorpusRun(MOVED, corpus, store))
    assert names(commands) == ["experiments.translation.inside.recentre", "nmt train"]
    assert log["tests"] == {}
    (store.model(MOVED) / "last.npz").touch()
    commands.clear()
    make(CorpusRun(MOVED, corpus, store))
    assert names(commands) == ["nmt train"]


def test_options_combine_corpus_row_and_seed(corpus, store, commands):
    make(CorpusRun(MOVED, corpus, store))
    options = json.loads((store.run(MOVED) / "options.json").read_text())
    assert (options["layer_normalization_type"], options["seed"], options["state_size"]) == (
        "layernorm",
        2,
        8,
    )
    assert (corpus.options["learning_rate"], options["learning_rate"]) == (0.25, 0.5)
    assert options["source_dataset"] == str(store.work / "text" / "train.en")


def test_a_run_of_the_grid_has_its_step_size_and_no_tests(corpus, store, commands):
    run = Run(RUN.condition, 0, 0.125)
    assert make_all([run], corpus, store) == {}
    log = logged(run, corpus, store)
    assert (log["options"]["learning_rate"], log["step_size_chosen"], log["tests"]) == (
        0.125,
        True,
        {},
    )
    assert names(commands) == ["nmt train"]
    assert "--keep" not in commands[0]


def test_a_training_that_fails_before_its_last_update_is_none(corpus, store, commands, monkeypatch):
    corpus.options["finish_after"] = 41  # one more than the stand-in makes
    execute = runs.execute

    def fail(store, *arguments, **given):
        execute(store, *arguments, **given)
        if "train" in arguments:
            (store.model(RUN) / "kept" / "20.npz").touch()
            raise UserError("the disk is full")

    monkeypatch.setattr(runs, "execute", fail)
    assert make_all([RUN], corpus, store) == {"rmsnorm-1": "the disk is full"}
    assert logged(RUN, corpus, store) is None
    assert (
        store.model(RUN) / "kept" / "20.npz"
    ).exists()  # its mean shares are measured when it is whole
    corpus.options["patience"] = 1  # then its last validation was the last, as if it diverged
    assert make_all([RUN], corpus, store) == {}


def test_a_log_with_other_options_is_refused(corpus, store, commands):
    make_all([RUN], corpus, store)
    elsewhere = Run(Condition("rmsnorm", "RMSNorm", kind="rmsnorm", centre=0.2), 1)
    with pytest.raises(
        UserError,
        match=r"centre was 0.0 and is now 0.2",
    ):
        logged(elsewhere, corpus, store)
    corpus.options["state_size"] = 16
    corpus.tests["web"] = "dev"
    with pytest.raises(UserError, match=r"is now 16, tests was \['news'\] and"):
        logged(RUN, corpus, store)


BENCHMARK = "benchmarks/training.py"


def test_seconds_are_kept_with_their_commit(corpus, store, ran, times):
    assert store.read_times() == []
    for _ in range(2):
        measure_seconds(
            [kind for kind in times["updates"]["float32"] if kind != SECOND_LAYERNORM],
            corpus,
            store,
        )
    assert store.read_times() == [{**times, "commit": "0123456789ab"}] * PROCESSES
    assert [command[0] for command in ran] == [BENCHMARK] * PROCESSES
    assert json.loads((store.work / "options.json").read_text()) == corpus.training(store.work)


def test_all_kinds_of_the_copy_are_timed_in_turn_and_layernorm_again(corpus, store, ran):
    measure_seconds(["none", "mine"], corpus, store)
    command = " ".join(ran[0])
    config = store.work / "options.json"
    given = f"--baseline {store.baseline} --kinds none mine layernorm --config {config} --json"
    assert given in command


@pytest.mark.parametrize(
    ("kinds", "lost", "count"),
    [([], "", PROCESSES - 1), (["mine"], "", PROCESSES), ([], SECOND_LAYERNORM, PROCESSES)],
    ids=["all kinds", "a new kind", "LayerNorm once"],
)
def test_a_process_that_timed_all_kinds_need_not_time_them_again(
    corpus, store, ran, times, kinds, lost, count
):
    updates = times["updates"]["float32"]
    timed = {kind: each for kind, each in updates.items() if kind != lost}
    store.write_times([{**times, "updates": {"float32": timed}}])
    measure_seconds([*(updates.keys() - {SECOND_LAYERNORM}), *kinds], corpus, store)
    assert len(ran) == count


def test_an_interrupted_measurement_is_not_kept(corpus, store, ran, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "execute", end)
    with pytest.raises(KeyboardInterrupt):
        measure_seconds(["none"], corpus, store)
    assert store.read_times() == []
