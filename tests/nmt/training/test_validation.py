"""Validations of a training: what they measure, and which model is the best."""

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event

from nmt.training.validation import describe_divergence
from tests.nmt.outcomes import weights
from tests.nmt.pairs import encode_pairs
from tests.nmt.training.scripted import CUT, LINES, scripted


def test_validations_count_the_translations_that_are_cut(make_trainer, tmp_path, capfd):
    make_trainer(tmp_path / "model", translate=scripted([0.75, 1.0]))[0]()
    said = capfd.readouterr().err.splitlines()
    (line,) = [line for line in said if "cut" in line]
    assert line.startswith("  16 of 64 translations ")


def test_the_metric_decides_which_model_is_best(make_trainer, tmp_path):
    """The second validation translates less, but the loss falls."""
    for metric, best in (("bleu", 3), ("chrf", 3), ("loss", 6)):
        train, _ = make_trainer(tmp_path / metric, scripted([0.9, 0.2]), valid_metric=metric)
        assert train().best.update == best


def test_a_resumed_training_with_another_metric_keeps_the_model_that_it_calls_best(
    make_trainer, tmp_path
):
    """The first run has its best BLEU at update 3.

    By the loss, update 6 would be better, but is not kept.
    """
    make_trainer(tmp_path / "model", scripted([0.9, 0.2]))[0]()
    train, model = make_trainer(
        tmp_path / "model", scripted([0.1]), valid_metric="loss", finish_after=9
    )
    assert train().best.update == 9
    stopped = {"patience": 1, "valid_freq": 1}
    progress = make_trainer(tmp_path / "stopped", scripted([0.9, 0.2]), **stopped)[0]()
    assert progress.update == 2
    progress = make_trainer(
        tmp_path / "stopped", scripted([0.2] * 4), valid_metric="loss", **stopped
    )[0]()
    assert progress.update > 2
    best = weights(tmp_path / "model" / "best.npz")
    np.testing.assert_array_equal(best[model.table.path], model.table)


def test_the_sets_of_a_validation_are_scored_one_by_one(
    make_trainer, write_lines, tmp_path, capsys
):
    """The first is copied and the second is not.

    A prefix, spelled in any way, is no part of a translation.
    """
    options = {
        "files": [write_lines(name, LINES) for name in ("copied", "other")],
        "valid_target_prefixes": [" a  x", ""],
    }

    def translate(lines):
        return [f"a UNK {line.decode()}" if i < len(LINES) else CUT for i, line in enumerate(lines)]

    train, _ = make_trainer(tmp_path / "model", translate, finish_after=3, **options)
    (validation,) = train().validations
    assert validation.sets["copied"]["bleu"] == pytest.approx(100)
    assert validation.sets["other"]["bleu"] == 0
    assert 0 < validation.bleu < 100
    assert "  copied  BLEU 100.00  chrF 100.00" in capsys.readouterr().err
    assert (tmp_path / "model" / "valid" / "3.txt").read_text().splitlines() == LINES + [CUT] * len(
        LINES
    )
    train, _ = make_trainer(tmp_path / "model", translate, **options)
    assert [each.sets for each in train().validations] == [validation.sets] * 2
    paths = map(str, (tmp_path / "model" / "logs").iterdir())
    events = [
        Event.FromString(record.numpy())
        for path in paths
        for record in tf.data.TFRecordDataset(path)
    ]
    logged = [(value.tag, event.step) for event in events for value in event.summary.value]
    assert logged.count(("bleu/copied", 3)) == logged.count(("chrf/other", 6)) == 1


def test_patience_stops_a_training_also_after_resuming(make_trainer, tmp_path):
    options = {"finish_after": 100, "patience": 2}
    train, _ = make_trainer(tmp_path / "model", translate=scripted([0.5, 0.4, 0.3]), **options)
    assert train("(--patience)").update == 9
    again, _ = make_trainer(tmp_path / "model", translate=scripted([]), **options)
    assert again().update == 9


def test_the_loss_is_that_of_a_word_or_end(make_trainer, vocabulary, tmp_path):
    train, model = make_trainer(tmp_path / "model")
    batch = encode_pairs([(line.encode(), line.encode()) for line in LINES], vocabulary, vocabulary)
    found = train().validations[-1].valid_loss
    assert found == pytest.approx(
        float(tf.reduce_sum(model.costs(*batch)) / tf.reduce_sum(batch.target_mask)), rel=1e-5
    )


def test_a_loss_above_twice_that_of_guessing_is_called_divergence():
    assert not describe_divergence(2 * np.log(100), 100)
    assert describe_divergence(2.01 * np.log(100), 100)
