import math

import pytest

from experiments.reporting.judging import Hypothesis
from experiments.translation.claims import HYPOTHESES, questions
from experiments.translation.condition import Condition
from experiments.translation.schedule import read_conditions
from tests.experiments.translation.conftest import make_result

ONE = Condition("one", "One", kind="rmsnorm")
OTHER = Condition("other", "Other", kind="layernorm")


def results(condition, *bleu, first=1):
    return [make_result(condition, seed, bleu=[each]) for seed, each in enumerate(bleu, first)]


def test_rows_are_paired_by_seed():
    asked = Hypothesis("one", "other", "equal", "claim", margin=0.5)
    (found,) = questions([*results(ONE, 20, 21, first=2), *results(OTHER, 10, 18, 30)], [asked])
    assert (found.pair, found.differences, found.margin) == ("One minus Other", [2, -9], 0.5)
    assert questions([*results(ONE, 20), *results(OTHER, 10, first=2)], [asked]) == []


def test_planned_seeds_are_asked_for_before_there_is_one():
    (found,) = questions([], [Hypothesis("rmsnorm", "layernorm", "equal", "claim", planned=8)])
    assert (found.pair, found.differences, found.planned) == ("RMSNorm minus LayerNorm", [], 8)


@pytest.mark.parametrize(
    ("measure", "difference"), [("bleu", 2), ("dev", 2), ("valid_loss", 0.25), ("train_loss", -1)]
)
def test_a_measure_is_read_from_the_log(measure, difference):
    pair = [*results(ONE, 22), *results(OTHER, 20)]
    for result, valid, train in zip(pair, (1.5, 1.25), (3.0, 4.0), strict=True):
        result.log["validations"][0].update(valid_loss=valid, train_loss=train)
    (found,) = questions(pair, [Hypothesis("one", "other", "equal", "claim", measure=measure)])
    assert found.differences == [difference]


def test_older_logs_have_no_chrf():
    pair = [*results(ONE, 22), *results(OTHER, 20)]
    (found,) = questions(pair, [Hypothesis("one", "other", "equal", "claim", measure="chrf")])
    assert math.isnan(found.differences[0])


def test_claims_are_about_rows_that_exist():
    names = {condition.name for condition in read_conditions()}
    assert {name for asked in HYPOTHESES for name in (asked.one, asked.other)} <= names
