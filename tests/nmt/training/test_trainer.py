"""Training: it learns, it stops, and a resumed run equals an uninterrupted one."""

import functools
import itertools
import json
import math
import re
import signal
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tqdm import tqdm

from nmt.errors import UserError
from nmt.model.registry import build_model
from nmt.storage.checkpoints import LAST
from nmt.training.interruption import Interrupted
from nmt.training.trainer import MOST_SKIPPED
from nmt.training.update import Update
from tests.nmt.outcomes import weights
from tests.nmt.training.scripted import LINES, scripted


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["layernorm", "none"])
def test_learns_to_copy(make_trainer, compiled, tmp_path, kind):
    """The loss begins at a word's entropy, log 6 = 1.8 nats.

    200 updates take two thirds of it away.
    """
    options = {
        "embedding_size": 8,
        "state_size": 8,
        "layer_normalization_type": kind,
        "learning_rate": 0.03,
    }
    train, _ = make_trainer(
        tmp_path / "model", build=build_model, finish_after=200, valid_freq=200, **options
    )
    (validation,) = train().validations
    assert validation.valid_loss < math.log(6) / 3


@pytest.mark.parametrize("interrupted_at", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_a_resumed_run_equals_an_uninterrupted_one(make_trainer, tmp_path, interrupted_at):
    """An epoch has four updates, so the interruptions are in the middle of an epoch.

    The first is between two validations. The extra validation there is kept and changes nothing
    else.
    """
    make_trainer(tmp_path / "whole", finish_after=9)[0]()
    make_trainer(tmp_path / "parts", finish_after=interrupted_at)[0]()
    make_trainer(tmp_path / "parts", finish_after=9)[0]()
    whole, parts = (weights(tmp_path / name / "last.npz") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert any("momentum" in name for name in whole)
    for name in whole:
        np.testing.assert_array_equal(whole[name], parts[name], err_msg=name)
    states = [
        json.loads((tmp_path / name / "progress.json").read_text()) for name in ("whole", "parts")
    ]
    extra = [v["update"] for v in states[1]["validations"] if not v["counts"]]
    assert extra == ([interrupted_at] if interrupted_at % 3 else [])
    for state in states:
        state["validations"] = [v for v in state["validations"] if v["counts"]]
        for record in (state, *state["validations"]):
            del record["seconds"]
    assert states[0] == states[1]


def interrupted(lines):
    raise Interrupted(128 + signal.SIGTERM)


def test_a_first_validation_that_was_interrupted_is_repeated(make_trainer, tmp_path):
    options = {"reload": "another model", "finish_after": 1}
    with pytest.raises(Interrupted):
        make_trainer(tmp_path / "model", interrupted, **options)[0]()
    assert not (tmp_path / "model" / LAST).exists()
    validations = make_trainer(tmp_path / "model", **options)[0]().validations
    assert [each.update for each in validations] == [0, 1]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"finish_after": 3}, "finish_after 3"),
        pytest.param({"max_epochs": 1}, "max_epochs 1", marks=pytest.mark.slow),
    ],
)
def test_a_training_that_has_passed_its_end_is_refused(make_trainer, tmp_path, options, named):
    make_trainer(tmp_path / "model")[0]()
    with pytest.raises(UserError, match=f"has made 6 updates, and --{named} ends it at "):
        make_trainer(tmp_path / "model", **options)[0]()


def test_a_validation_that_is_saved_has_its_translations(make_trainer, tmp_path):
    """Also if the training ends before all checkpoints are written."""
    train, _ = make_trainer(tmp_path / "model", finish_after=3)
    (tmp_path / "model" / "best.npz").mkdir()
    with pytest.raises(UserError, match=r"best\.npz cannot be written"):
        train()
    assert (tmp_path / "model" / "last.npz").exists()
    assert (tmp_path / "model" / "valid" / "3.txt").read_text().splitlines() == LINES


def broken(lines):
    raise RuntimeError


def test_a_training_is_saved_between_validations(make_trainer, tmp_path):
    train, _ = make_trainer(tmp_path / "model", broken, valid_freq=100, save_freq=2, finish_after=5)
    with pytest.raises(RuntimeError):
        train()
    assert weights(tmp_path / "model" / "last.npz")["adam/iteration"] == 4


@pytest.mark.slow
def test_a_plateau_of_the_loss_reduces_the_learning_rate_also_after_resuming(
    make_trainer, compiled, tmp_path, capsys
):
    """At a huge learning rate the loss rises, so each validation after the first is a plateau of
    one.

    Adam divides by the size of the gradient, so an update moves a weight by about the learning
    rate.
    """
    options = {
        "learning_rate_reduce_factor": 0.1,
        "learning_rate_reduce_num_not_improved": 1,
        "valid_freq": 1,
    }
    options |= {"learning_rate": 1e3, "learning_schedule": "constant"}
    train, model = make_trainer(tmp_path / "whole", finish_after=4, **options)
    progress = train()
    assert progress.plateaus(1) == 3, [each.valid_loss for each in progress.validations]
    said = "the validation loss has not fallen for 1 validations: learning rate x "
    assert re.findall(f"{said}(\\S+)", capsys.readouterr().err) == ["0.1", "0.01", "0.001"]
    for last in (2, 4):
        train, resumed = make_trainer(tmp_path / "parts", finish_after=last, **options)
        train()
    np.testing.assert_array_equal(resumed.table, model.table)


def test_a_training_is_saved_every_ten_minutes(make_trainer, tmp_path, monkeypatch):
    now = [0.0]
    apply = Update.apply
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def slow(self, gradients):
        now[0] += 250
        return apply(self, gradients)

    monkeypatch.setattr(Update, "apply", slow)
    train, _ = make_trainer(tmp_path / "model", broken, valid_freq=100, finish_after=5)
    with pytest.raises(RuntimeError):
        train()
    assert (
        weights(tmp_path / "model" / "last.npz")["adam/iteration"] == 3
    )  # after 750 s; the next would be after 6


def test_slow_first_batches_are_named_and_a_silent_bar_changes_nothing(
    make_trainer, tmp_path, monkeypatch, capsys
):
    make_trainer(tmp_path / "shown", finish_after=2)[0]()
    said = capsys.readouterr().err
    assert re.search(r"compiling, .*\(1 of 1, \d+ tokens", said)
    assert re.search(r"update 2, epoch 0\.50; .* 2/2 ", said)
    monkeypatch.setattr(tqdm, "__init__", functools.partialmethod(tqdm.__init__, disable=True))
    make_trainer(tmp_path / "silent", finish_after=2)[0]()
    shown, silent = (weights(tmp_path / name / "last.npz") for name in ("shown", "silent"))
    for name in shown:
        np.testing.assert_array_equal(shown[name], silent[name])


@pytest.mark.slow
def test_figures_of_updates_and_validations_are_logged_once(make_trainer, tmp_path):
    """Also those of a training that is resumed."""
    make_trainer(tmp_path / "model", summary_freq=2, finish_after=4)[0]()
    make_trainer(tmp_path / "model", summary_freq=2, finish_after=6)[0]()
    paths = map(str, (tmp_path / "model" / "logs").iterdir())
    events = [
        Event.FromString(record.numpy())
        for path in paths
        for record in tf.data.TFRecordDataset(path)
    ]
    logged = sorted((value.tag, event.step) for event in events for value in event.summary.value)
    of_updates = ("gradient_norm", "learning_rate", "loss", "tokens_per_second")
    of_validations = ("bleu", "chrf", "train_loss", "valid_loss")
    expected = [
        *itertools.product(map("update/{}".format, of_updates), (2, 4, 6)),
        *itertools.product(of_validations, (3, 4, 6)),
    ]
    assert logged == sorted(expected)


@pytest.mark.parametrize(
    ("options", "saved"), [({"valid_freq": 4}, 12), ({"valid_freq": 100, "save_freq": 1}, 5)]
)
def test_the_training_stops_after_ten_skipped_updates(
    make_trainer, tmp_path, capsys, options, saved
):
    """Validations save them. Between validations the last one that was not skipped stays saved."""
    train, model = make_trainer(tmp_path / "model", finish_after=100, **options)
    total_cost = model.total_cost

    def infinite_from_update_6_on(*batch, dropout_seed, **options):
        factor = tf.where(dropout_seed[1] >= 6, np.inf, 1.0)
        return factor * total_cost(*batch, dropout_seed=dropout_seed, **options)

    model.total_cost = infinite_from_update_6_on
    with pytest.raises(UserError) as caught:
        train()
    said = "10 updates in a row were skipped; in update 15, the loss is inf"
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(f"{tmp_path / 'model'} keeps the model of update {saved}")
    assert capsys.readouterr().err.count("is skipped: the loss is inf") == MOST_SKIPPED
    last = weights(tmp_path / "model" / "last.npz")
    assert all(np.isfinite(array).all() for array in last.values())
    assert last["adam/iteration"] == 5


def test_a_model_whose_loss_is_not_finite_is_not_saved(make_trainer, tmp_path):
    train, model = make_trainer(tmp_path / "model")
    model.table.assign(np.full([6, 6], np.nan))
    with pytest.raises(UserError, match=r"nan after update 3; .*is saved"):
        train()
    assert not list(tmp_path.glob("model/*.npz"))


@pytest.mark.parametrize(("options", "last"), [({"finish_after": 4}, 4), ({"max_epochs": 2}, 6)])
def test_stops_after_updates_or_epochs(make_trainer, tmp_path, options, last):
    """64 pairs in batches of 22 are three updates an epoch."""
    train, _ = make_trainer(
        tmp_path / "model", **{"finish_after": 100, "batch_size": 22, **options}
    )
    progress = train("--" + " ".join(map(str, *options.items())))
    assert progress.update == progress.validations[-1].update == last


def test_the_best_models_are_kept_without_the_latest(make_trainer, tmp_path):
    make_trainer(tmp_path / "model", scripted([0.9, 0.2, 0.3]), finish_after=9, keep_best=2)[0]()
    kept = (tmp_path / "model" / "kept").iterdir()
    assert sorted(path.name for path in kept) == ["3.npz", "9.npz"]
