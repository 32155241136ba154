"""The progress of a training: the best validation, patience, and reading it from a file."""

import dataclasses
import json
from dataclasses import replace

import pytest

from nmt.errors import UserError
from nmt.training.progress import Progress, Validation


def after(*scores):
    """Progress after validations of these BLEU scores, three updates apart."""
    progress = Progress()
    for score in scores:
        progress = validated(progress, score, 3)
    return progress


def validated(progress, score, updates, counts=True):
    for _ in range(updates):
        progress = progress.after_update(30.0, 10.0)
    return progress.after_validation(Validation(progress.update, 0.5, 3.0, 2.0, score, 9.5, counts))


def test_progress_survives_json():
    progress = after(10.0, 9.0).after_update(0.1 + 0.2, 7.0)
    assert Progress.from_json(json.loads(json.dumps(dataclasses.asdict(progress)))) == progress
    assert (progress.best.update, progress.bad_validations, progress.update, progress.loss) == (
        3,
        1,
        7,
        0.1 + 0.2,
    )


def test_an_extra_validation_does_not_affect_a_resumed_training():
    """Not even where it was the best: the next that counts is compared with those that count."""
    between = validated(after(10.0), 12.0, 2, counts=False)
    assert (between.best.update, between.loss, between.tokens, between.bad_validations) == (
        5,
        60.0,
        20.0,
        0,
    )
    assert (
        validated(between, 11.0, 1).bad_validations
        == validated(after(10.0), 11.0, 3).bad_validations
        == 0
    )
    assert (
        validated(between, 9.0, 1).bad_validations
        == validated(after(10.0), 9.0, 3).bad_validations
        == 1
    )


def test_another_ranking_begins_with_the_next_validation():
    """The file of the best model holds the first of these three, so no later one may be called
    the best unsaved."""
    known = replace(after(10.0, 9.0, 8.0), tokenizer="13a", search="beam")
    assert known.ranked_by("bleu", "13a", "beam") == known
    for ranking in (("loss", "13a", "beam"), ("bleu", "char", "beam"), ("bleu", "13a", "greedy")):
        changed = validated(known.ranked_by(*ranking), 5.0, 3)
        assert (changed.best.update, changed.bad_validations) == (12, 0)
    by_loss = replace(known, metric="loss")  # depends neither on the tokenizer nor on the search
    assert by_loss.ranked_by("loss", "char", "greedy").best == by_loss.best
    by_chrf = replace(known, metric="chrf")  # does not depend on the tokenizer
    assert by_chrf.ranked_by("chrf", "char", "beam").best == by_chrf.best
    assert by_chrf.ranked_by("chrf", "13a", "greedy").best is None


@pytest.mark.parametrize(
    ("losses", "plateaus"),
    [
        ([], 0),
        ([3.0, 2.0, 1.0], 0),
        ([3.0, 3.0], 0),
        ([3.0, 3.0, 3.5], 1),
        ([3.0, 3.5, 2.9, 3.0], 0),  # a lower loss ends the wait
        ([3.0, 3.5, 3.4, 3.3, 3.2], 2),  # lower than the one before is not enough
        ([3.0, 3.5, 3.4, 3.3, 2.0, 2.0, 2.0], 2),
    ],
)
def test_plateaus_of_two_validations_without_a_lower_loss(losses, plateaus):
    validations = tuple(Validation(i, 0.5, 3.0, loss, 10.0, 9.5) for i, loss in enumerate(losses))
    assert Progress(validations=validations).plateaus(2) == plateaus
    extra = Validation(99, 0.5, 3.0, 9.0, 10.0, 9.5, counts=False)
    assert Progress(validations=(*validations, extra, extra)).plateaus(2) == plateaus


def test_a_skipped_update_adds_nothing_and_is_counted():
    progress = after(10.0).after_skipping().after_skipping()
    assert (progress.update, progress.loss, progress.skipped, progress.skipped_in_a_row) == (
        5,
        0.0,
        2,
        2,
    )
    progress = progress.after_update(1.0, 1.0)
    assert (progress.skipped, progress.skipped_in_a_row) == (2, 0)


@pytest.mark.parametrize(
    "state",
    [
        {"update": "3"},
        {"epoch": 3},
        {"validations": [3]},
        {"validations": [{"update": 3}]},
        {"validations": 3},
    ],
)
def test_malformed_progress_is_refused(state):
    with pytest.raises(UserError, match="progress of the training is damaged"):
        Progress.from_json(state)


def test_bleu_is_compared_as_it_is_printed_and_the_loss_decides_between_equals():
    """In hundredths."""
    first = Validation(3, 0.5, 3.0, 2.0, 30.001, 9.5)
    better = [
        replace(first, bleu=30.01, valid_loss=9.0),
        replace(first, bleu=30.004, valid_loss=1.9),
    ]
    worse = [
        replace(first, bleu=29.99, valid_loss=1.0),
        replace(first, bleu=30.004, valid_loss=2.1),
        first,
    ]
    for others, bad in ((better, 0), (worse, 1)):
        for other in others:
            progress = Progress().after_validation(first).after_validation(replace(other, update=6))
            assert (progress.bad_validations, progress.best.update) == (bad, 3 if bad else 6)
