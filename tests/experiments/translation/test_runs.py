import itertools
import json

import pytest

from experiments.runs.run import GRID_SEED
from experiments.translation import runs
from experiments.translation.condition import Condition, Run
from experiments.translation.corpus import prepare
from experiments.translation.runs import Training, make, make_all
from nmt.errors import UserError

RUN = Run(Condition("rmsnorm", "RMSNorm", kind="rmsnorm"), 1)
MOVED = Run(
    Condition("moved", "elsewhere", kind="layernorm", centre=0.2, options={"learning_rate": 0.5}), 2
)


def logged(run, corpus, store):
    """Returns the log of a run, or `None`."""
    return store.read(Training(run, corpus, store))


@pytest.fixture
def commands(corpus, store, ran):
    """The commands that are run once the text is in place."""
    prepare(corpus, store)
    ran.clear()
    return ran


def names(commands):
    return [
        " ".join(each for each in command[1:3] if not each.startswith("-")) for command in commands
    ]


def test_a_run_is_trained_and_tested_and_leaves_a_log(corpus, store, commands):
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


def test_the_models_of_all_validations_are_kept_until_they_are_measured(corpus, store, commands):
    make_all([RUN], corpus, store)
    given = dict(itertools.pairwise(commands[0]))
    assert given["--keep"] == "40"  # no more validations than updates
    assert not (store.model(RUN) / "kept").exists()


def test_a_run_of_the_grid_keeps_only_its_best_model(corpus, store, commands):
    make(Training(Run(RUN.condition, GRID_SEED, 0.5), corpus, store))
    assert names(commands) == ["nmt train"]
    assert "--keep" not in commands[0]


def test_a_log_contains_no_folders(corpus, store, commands, tmp_path):
    make_all([RUN], corpus, store)
    log = (store.logs / "rmsnorm-1.json").read_text()
    assert str(tmp_path) not in log
    assert json.loads(log)["options"]["dictionaries"] == ["source.model", "target.model"]


def test_another_centre_is_set_once(corpus, store, commands):
    make(Training(MOVED, corpus, store))
    assert names(commands) == ["experiments.translation.inside.recentre", "nmt train"]
    (store.model(MOVED) / "last.npz").touch()
    commands.clear()
    make(Training(MOVED, corpus, store))
    assert names(commands) == ["nmt train"]


def test_a_run_with_another_centre_translates_no_test_set(corpus, store, commands):
    assert make_all([MOVED], corpus, store) == {}
    assert logged(MOVED, corpus, store)["tests"] == {}


def test_options_combine_corpus_row_and_seed(corpus, store, commands):
    make(Training(MOVED, corpus, store))
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


def test_a_training_that_fails_after_its_last_update_is_a_result(
    corpus, store, commands, monkeypatch
):
    """As one does that diverged."""
    execute = runs.execute

    def fail(store, *arguments, **given):
        execute(store, *arguments, **given)
        if "train" in arguments:
            raise UserError("the training diverges")

    monkeypatch.setattr(runs, "execute", fail)
    assert make_all([RUN], corpus, store) == {}


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
    corpus.options["patience"] = 1  # then its last validation was the last
    assert make_all([RUN], corpus, store) == {}


def test_a_log_with_other_options_is_refused(corpus, store, commands):
    make_all([RUN], corpus, store)
    elsewhere = Run(Condition("rmsnorm", "RMSNorm", kind="rmsnorm", centre=0.2), 1)
    with pytest.raises(
        UserError,
        match=r"rmsnorm-1.json: centre was 0.0 and is now 0.2.*; move .* away, or restore",
    ):
        logged(elsewhere, corpus, store)
    corpus.options["state_size"] = 16
    corpus.tests["web"] = "dev"
    with pytest.raises(
        UserError, match=r"state_size was 8 and is now 16, tests was \['news'\] and is now"
    ):
        logged(RUN, corpus, store)
