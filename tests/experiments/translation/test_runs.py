import itertools
import json

import pytest

from experiments.translation import runs
from experiments.translation.corpus import prepare
from experiments.translation.row import Row, Run
from experiments.translation.runs import is_done, make, read_log
from experiments.trials.trial import GRID_SEED
from nmt.errors import UserError

RUN = Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm"), 1)
MOVED = Run(Row("moved", "elsewhere", kind="layernorm", centre=0.2, options={"learning_rate": 0.5}), 2)


@pytest.fixture
def commands(corpus, place, ran):
    """The commands that are run once the text is in place."""
    prepare(corpus, place)
    ran.clear()
    return ran


def names(commands):
    return [" ".join(each for each in command[1:3] if not each.startswith("-")) for command in commands]


def test_a_run_is_trained_and_tested_and_leaves_a_log(corpus, place, commands):
    assert not is_done(RUN, corpus, place)
    make(RUN, corpus, place, lambda: None)
    assert is_done(RUN, corpus, place)
    assert names(commands) == ["nmt train", "nmt translate", "experiments.translation.inside.mean_shares"]
    log = read_log(RUN, place)
    assert [log["tests"]["news"][metric] for metric in ("bleu", "chrf")] == pytest.approx([100, 100])
    assert log["tests"]["news"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert (log["commit"], log["centre"]) == ("0123456789ab", 0)
    assert log["mean_share"]["20"] == {"encoder.norm": 0.5}


def test_the_models_of_all_validations_are_kept_until_they_are_measured(corpus, place, commands):
    make(RUN, corpus, place, lambda: None)
    given = dict(itertools.pairwise(commands[0]))
    assert given["--keep"] == "40"  # no more validations than updates
    assert not (place.model(RUN) / "kept").exists()


def test_a_run_of_the_grid_keeps_only_its_best_model(corpus, place, commands):
    make(Run(RUN.row, GRID_SEED, 0.5), corpus, place, lambda: None)
    assert names(commands) == ["nmt train"]
    assert "--keep" not in commands[0]


def test_a_log_contains_no_folders(corpus, place, commands, tmp_path):
    make(RUN, corpus, place, lambda: None)
    log = place.log(RUN).read_text()
    assert str(tmp_path) not in log
    assert json.loads(log)["options"]["dictionaries"] == ["source.model", "target.model"]


def test_another_centre_is_set_once(corpus, place, commands):
    make(MOVED, corpus, place, lambda: None)
    assert names(commands) == ["experiments.translation.inside.recentre", "nmt train"]
    (place.model(MOVED) / "last.npz").touch()
    commands.clear()
    make(MOVED, corpus, place, lambda: None)
    assert names(commands) == ["nmt train"]


def test_a_run_with_another_centre_translates_no_test_set(corpus, place, commands):
    make(MOVED, corpus, place, lambda: None)
    assert is_done(MOVED, corpus, place)
    assert read_log(MOVED, place)["tests"] == {}


def test_options_combine_corpus_row_and_seed(corpus, place, commands):
    make(MOVED, corpus, place, lambda: None)
    options = json.loads((place.run(MOVED) / "options.json").read_text())
    assert (options["layer_normalization_type"], options["seed"], options["state_size"]) == ("layernorm", 2, 8)
    assert (corpus.options["learning_rate"], options["learning_rate"]) == (0.25, 0.5)
    assert options["source_dataset"] == str(place.work / "text" / "train.en")


def test_a_run_of_the_grid_has_its_step_size_and_no_tests(corpus, place, commands):
    run = Run(RUN.row, 0, 0.125)
    make(run, corpus, place, lambda: None)
    assert is_done(run, corpus, place)
    log = read_log(run, place)
    assert (log["options"]["learning_rate"], log["step_size_chosen"], log["tests"]) == (0.125, True, {})
    assert names(commands) == ["nmt train"]


def test_a_training_that_fails_after_its_last_update_is_a_result(corpus, place, commands, monkeypatch):
    """As one does that diverged."""
    execute = runs.execute

    def fail(place, *arguments, **given):
        execute(place, *arguments, **given)
        if "train" in arguments:
            raise UserError("the training diverges")

    monkeypatch.setattr(runs, "execute", fail)
    make(RUN, corpus, place, lambda: None)
    assert is_done(RUN, corpus, place)


def test_a_training_that_fails_before_its_last_update_is_none(corpus, place, commands, monkeypatch):
    corpus.options["finish_after"] = 41  # one more than the stand-in makes
    execute = runs.execute

    def fail(place, *arguments, **given):
        execute(place, *arguments, **given)
        if "train" in arguments:
            raise UserError("the disk is full")

    monkeypatch.setattr(runs, "execute", fail)
    with pytest.raises(UserError, match="the disk is full"):
        make(RUN, corpus, place, lambda: None)
    assert not is_done(RUN, corpus, place)


def test_a_log_with_other_options_is_refused(corpus, place, commands):
    make(RUN, corpus, place, lambda: None)
    elsewhere = Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm", centre=0.2), 1)
    with pytest.raises(UserError, match=r"rmsnorm-1.json: centre was 0.0 and is now 0.2.*; move .* away, or restore"):
        is_done(elsewhere, corpus, place)
    corpus.options["state_size"] = 16
    corpus.tests["web"] = "dev"
    with pytest.raises(UserError, match=r"state_size was 8 and is now 16, tests was \['news'\] and is now"):
        is_done(RUN, corpus, place)
