import itertools
import json

import pytest

from experiments.translation import runs
from experiments.translation.corpus import prepare
from experiments.translation.row import Row, Run
from experiments.translation.runs import Training, make, make_all
from experiments.trials.trial import GRID_SEED
from nmt.errors import UserError

RUN = Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm"), 1)
MOVED = Run(
    Row("moved", "elsewhere", kind="layernorm", centre=0.2, options={"learning_rate": 0.5}), 2
)


def logged(run, corpus, place):
    """Returns the log of a run, or `None`."""
    return place.read(Training(run, corpus, place))


@pytest.fixture
def commands(corpus, place, ran):
    """The commands that are run once the text is in place."""
    prepare(corpus, place)
    ran.clear()
    return ran


def names(commands):
    return [
        " ".join(each for each in command[1:3] if not each.startswith("-")) for command in commands
    ]


def test_a_run_is_trained_and_tested_and_leaves_a_log(corpus, place, commands):
    assert logged(RUN, corpus, place) is None
    assert make_all([RUN], corpus, place) == {}
    assert names(commands) == [
        "nmt train",
        "nmt translate",
        "experiments.translation.inside.mean_shares",
    ]
    log = logged(RUN, corpus, place)
    assert [log["tests"]["news"][metric] for metric in ("bleu", "chrf")] == pytest.approx(
        [100, 100]
    )
    assert log["tests"]["news"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert (log["commit"], log["centre"]) == ("0123456789ab", 0)
    assert log["mean_share"]["20"] == {"encoder.norm": 0.5}


def test_the_models_of_all_validations_are_kept_until_they_are_measured(corpus, place, commands):
    make_all([RUN], corpus, place)
    given = dict(itertools.pairwise(commands[0]))
    assert given["--keep"] == "40"  # no more validations than updates
    assert not (place.model(RUN) / "kept").exists()


def test_a_run_of_the_grid_keeps_only_its_best_model(corpus, place, commands):
    make(Training(Run(RUN.row, GRID_SEED, 0.5), corpus, place))
    assert names(commands) == ["nmt train"]
    assert "--keep" not in commands[0]


def test_a_log_contains_no_folders(corpus, place, commands, tmp_path):
    make_all([RUN], corpus, place)
    log = (place.logs / "rmsnorm-1.json").read_text()
    assert str(tmp_path) not in log
    assert json.loads(log)["options"]["dictionaries"] == ["source.model", "target.model"]


def test_another_centre_is_set_once(corpus, place, commands):
    make(Training(MOVED, corpus, place))
    assert names(commands) == ["experiments.translation.inside.recentre", "nmt train"]
    (place.model(MOVED) / "last.npz").touch()
    commands.clear()
    make(Training(MOVED, corpus, place))
    assert names(commands) == ["nmt train"]


def test_a_run_with_another_centre_translates_no_test_set(corpus, place, commands):
    assert make_all([MOVED], corpus, place) == {}
    assert logged(MOVED, corpus, place)["tests"] == {}


def test_options_combine_corpus_row_and_seed(corpus, place, commands):
    make(Training(MOVED, corpus, place))
    options = json.loads((place.run(MOVED) / "options.json").read_text())
    assert (options["layer_normalization_type"], options["seed"], options["state_size"]) == (
        "layernorm",
        2,
        8,
    )
    assert (corpus.options["learning_rate"], options["learning_rate"]) == (0.25, 0.5)
    assert options["source_dataset"] == str(place.work / "text" / "train.en")


def test_a_run_of_the_grid_has_its_step_size_and_no_tests(corpus, place, commands):
    run = Run(RUN.row, 0, 0.125)
    assert make_all([run], corpus, place) == {}
    log = logged(run, corpus, place)
    assert (log["options"]["learning_rate"], log["step_size_chosen"], log["tests"]) == (
        0.125,
        True,
        {},
    )
    assert names(commands) == ["nmt train"]


def test_a_training_that_fails_after_its_last_update_is_a_result(
    corpus, place, commands, monkeypatch
):
    """As one does that diverged."""
    execute = runs.execute

    def fail(place, *arguments, **given):
        execute(place, *arguments, **given)
        if "train" in arguments:
            raise UserError("the training diverges")

    monkeypatch.setattr(runs, "execute", fail)
    assert make_all([RUN], corpus, place) == {}


def test_a_training_that_fails_before_its_last_update_is_none(corpus, place, commands, monkeypatch):
    corpus.options["finish_after"] = 41  # one more than the stand-in makes
    execute = runs.execute

    def fail(place, *arguments, **given):
        execute(place, *arguments, **given)
        if "train" in arguments:
            (place.model(RUN) / "kept" / "20.npz").touch()
            raise UserError("the disk is full")

    monkeypatch.setattr(runs, "execute", fail)
    assert make_all([RUN], corpus, place) == {"rmsnorm-1": "the disk is full"}
    assert logged(RUN, corpus, place) is None
    assert (
        place.model(RUN) / "kept" / "20.npz"
    ).exists()  # its mean shares are measured when it is whole
    corpus.options["patience"] = 1  # then its last validation was the last
    assert make_all([RUN], corpus, place) == {}


def test_a_log_with_other_options_is_refused(corpus, place, commands):
    make_all([RUN], corpus, place)
    elsewhere = Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm", centre=0.2), 1)
    with pytest.raises(
        UserError,
        match=r"rmsnorm-1.json: centre was 0.0 and is now 0.2.*; move .* away, or restore",
    ):
        logged(elsewhere, corpus, place)
    corpus.options["state_size"] = 16
    corpus.tests["web"] = "dev"
    with pytest.raises(
        UserError, match=r"state_size was 8 and is now 16, tests was \['news'\] and is now"
    ):
        logged(RUN, corpus, place)
