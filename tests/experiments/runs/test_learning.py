import math

import pytest
from matplotlib.figure import Figure

from experiments.reporting.judging import Hypothesis
from experiments.runs.learning import (
    Column,
    Comparison,
    Curve,
    Learning,
    best,
    claims_section,
    last,
    last_loss,
    learning_section,
    mean_loss,
    mean_of,
)
from experiments.runs.run import GRID_SEED, Condition, Run
from tests.experiments.runs.conftest import CONDITIONS, SETTING

LAYERNORM, RMSNORM = CONDITIONS
NONE = Condition("none", "without a norm", None, paper=True)
CURVES = [Curve("train", "loss", "loss"), Curve("validations", "error", "error, %", scale="linear")]


def log(loss):
    validations = [
        {"update": 10, "nll": 0.5, "error": 3.0},
        {"update": 20, "nll": 0.75, "error": 4.0},
    ]
    train = [{"update": 10, "loss": loss + 0.1}, {"update": 20, "loss": loss - 0.1}]
    return {"train": train, "validations": validations, "options": {"step_size": 0.001}}


def made(outcome="equal", unit="%", published=None, **losses):
    conditions = {condition.name: condition for condition in [*CONDITIONS, NONE]}
    logs = {}
    for name, found in losses.items():
        for seed, loss in enumerate(found, 1):
            logs[Run(conditions[name], SETTING, seed, 0.001)] = log(loss)
    asked = Hypothesis("rmsnorm", "layernorm", outcome, "they differ so", "a table")
    comparison = Comparison("mean loss", mean_loss, unit, [asked])
    column = Column("loss", mean_loss, 2, "nats")
    section = learning_section(
        logs, Learning("Title", "Text.", [column], CURVES, [comparison], published or {})
    )
    return section, claims_section(logs, [comparison])


def test_values_of_a_log():
    assert best("error", "nll")(log(1.0)) == 3.0
    assert last("error")(log(1.0)) == 4.0
    assert mean_of("error")(log(1.0)) == 3.5
    diverged = {"validations": [{"nll": math.nan, "error": 90.0}, *log(1.0)["validations"]]}
    assert best("error", "nll")(diverged) == 3.0
    assert (mean_loss(log(1.0)), last_loss(log(1.0))) == pytest.approx((1.0, 0.9))


def test_a_row_of_the_table_has_seeds_step_size_values_and_what_was_published():
    section, _ = made(rmsnorm=[1.0, 2.0], layernorm=[1.0], published={"rmsnorm": "1.2"})
    assert section.columns == ["", "seeds", "learning rate", "loss", "published"]
    assert section.rows == [
        ["RMSNorm, small batches", "2", "0.001", "1.50 (sd 0.71) nats", "1.2"],
        ["LayerNorm, small batches", "1", "0.001", "1.00 nats", ""],
    ]
    assert "published" not in made(rmsnorm=[1.0])[0].columns


def test_the_margin_is_a_quarter_of_layernorms_effect_and_without_effect_nothing_is_equal():
    _, claims = made(
        none=[4.0, 6.1, 8.0], layernorm=[2.0, 4.0, 6.0], rmsnorm=[2.1, 4.1, 6.1], unit=" nats"
    )
    (claim,) = claims.claims
    assert "margin ±0.51; higher" in claim.verdict
    assert made(none=[4.0, 6.0, 8.0], layernorm=[5.0, 4.0, 9.0], rmsnorm=[2.1, 4.1, 6.1])[1] is None


def test_differences_are_relative_in_percent_and_absolute_in_other_units():
    (relative,) = made("lower", rmsnorm=[1.0, 2.0], layernorm=[2.0, 4.0])[1].claims
    (absolute,) = made("lower", unit=" points", rmsnorm=[1.0, 2.0], layernorm=[2.0, 3.0])[1].claims
    assert relative.ours.startswith("-50.0 [-50.0, -50.0]% in mean loss")
    assert absolute.ours.startswith("-1.0 [-1.0, -1.0] points in mean")


def test_a_claim_waits_for_its_rows():
    (claim,) = made("lower", rmsnorm=[1.0, 2.0])[1].claims
    assert claim.ours == "0 seeds of 2" and "before all seeds" in claim.verdict


def test_a_claim_of_another_setting_is_left_out():
    elsewhere = Hypothesis("rmsnorm", "layernorm", "lower", "claim", "paper", setting="large")
    logs = {Run(condition, SETTING, 1, 0.001): log(1.0) for condition in CONDITIONS}
    assert claims_section(logs, [Comparison("mean loss", mean_loss, "%", [elsewhere])]) is None


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("diverged", "other"), [("rmsnorm", "layernorm"), ("layernorm", "rmsnorm")]
)
def test_a_training_that_diverged_is_named_and_judges_nothing(loss, diverged, other):
    section, claims = made("lower", **{diverged: [1.0, loss, 2.0], other: [1.0, 1.5, 2.0]})
    assert section.rows[0][-1] == "1 of 3 diverged"
    assert section.rows[1][-1] == "1.50 (sd 0.50) nats"
    (claim,) = claims.claims
    assert (claim.ours, claim.verdict) == ("a training diverged, 3 seeds", "not shown")
    section.plot(Figure())


def test_without_a_reported_seed_there_is_no_section():
    logs = {Run(RMSNORM, SETTING, GRID_SEED, 0.001): log(1.0)}
    assert learning_section(logs, Learning("Title", "", [], CURVES, [])) is None


def test_the_picture_has_each_curve_with_the_range_of_the_seeds():
    figure = Figure()
    made(rmsnorm=[1.0, 2.0])[0].plot(figure)
    losses, errors = figure.axes
    assert list(losses.lines[0].get_ydata()) == pytest.approx([1.6, 1.4])
    assert sorted({round(y, 6) for _, y in losses.collections[0].get_paths()[0].vertices}) == [
        0.9,
        1.1,
        1.9,
        2.1,
    ]
    assert list(errors.lines[0].get_ydata()) == pytest.approx([3, 4])
    assert (losses.get_yscale(), errors.get_yscale()) == ("log", "linear")
