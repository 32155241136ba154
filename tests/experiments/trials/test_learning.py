import math

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from matplotlib.figure import Figure

from experiments.trials.learning import (
    Column,
    Comparison,
    Curve,
    Expectation,
    Learning,
    best,
    last,
    last_loss,
    learning_section,
    mean_loss,
    mean_of,
)
from experiments.trials.trial import GRID_SEED, Trial
from tests.experiments.trials.conftest import ROWS, SETTING

LAYERNORM, RMSNORM = ROWS
CURVES = [Curve("train", "loss", "loss"), Curve("validations", "error", "error, %", scale="linear")]


def log(loss):
    validations = [{"update": 10, "nll": 0.5, "error": 3.0}, {"update": 20, "nll": 0.75, "error": 4.0}]
    train = [{"update": 10, "loss": loss + 0.1}, {"update": 20, "loss": loss - 0.1}]
    return {"train": train, "validations": validations, "options": {"step_size": 0.001}}


def made(outcome="equal", unit="%", published=None, **losses):
    rows = {row.name: row for row in ROWS}
    logs = {
        Trial(rows[name], SETTING, seed, 0.001): log(loss)
        for name, found in losses.items()
        for seed, loss in enumerate(found, 1)
    }
    expected = Expectation("rmsnorm", "layernorm", outcome, "they differ so", "a table")
    comparison = Comparison("mean loss", mean_loss, 1.0, unit, [expected])
    column = Column("loss", mean_loss, 2, "nats")
    return learning_section(logs, Learning("Title", "Text.", [column], CURVES, [comparison], published or {}))


def test_values_of_a_log():
    assert best("error", "nll")(log(1.0)) == 3.0
    assert last("error")(log(1.0)) == 4.0
    assert mean_of("error")(log(1.0)) == 3.5
    diverged = {"validations": [{"nll": math.nan, "error": 90.0}, *log(1.0)["validations"]]}
    assert best("error", "nll")(diverged) == 3.0
    assert (mean_loss(log(1.0)), last_loss(log(1.0))) == pytest.approx((1.0, 0.9))


def test_a_row_of_the_table_has_seeds_step_size_values_and_what_was_published():
    section = made(rmsnorm=[1.0, 2.0], layernorm=[1.0], published={"rmsnorm": "1.2"})
    assert section.columns == ["", "seeds", "step size", "loss", "published"]
    assert section.rows == [
        ["RMSNorm, small batches", "2", "0.001", "1.50 (sd 0.71) nats", "1.2"],
        ["LayerNorm, small batches", "1", "0.001", "1.00 nats", ""],
    ]
    assert "published" not in made(rmsnorm=[1.0]).columns


@pytest.mark.parametrize(
    ("outcome", "layernorm", "verdict"),
    [
        ("equal", [1.0, 2.0, 4.0], "borne out: 90% interval [+0.0, +0.0] within ±1%"),
        ("equal", [2.0, 4.0, 8.0], "not borne out: lower"),
        ("equal", [0.5, 2.0, 8.0], "not shown: 90% interval [-112.1, +145.4] not within ±1%"),
        ("lower", [2.0, 4.0, 8.0], "borne out"),
        ("higher", [2.0, 4.0, 8.0], "the opposite: lower"),
        ("higher", [0.5, 1.0, 2.0], "borne out"),
        ("lower", [0.5, 2.0, 8.0], "not shown"),
        ("lower", [2.0], "not judged yet"),
    ],
)
def test_a_claim_is_judged_over_paired_seeds(outcome, layernorm, verdict):
    (claim,) = made(outcome, rmsnorm=[1.0, 2.0, 4.0], layernorm=layernorm).claims
    assert claim.verdict == verdict


def test_claims_are_corrected_for_their_number():
    """The p-value of these differences is 0.0145: significant alone, and not if it is one of five."""
    differences = [0.9, 1.4, 1.2, 0.5]
    rows = {row.name: row for row in ROWS}
    logs = {Trial(rows["layernorm"], SETTING, seed, 0.001): log(1.0) for seed in range(1, 5)}
    logs |= {Trial(rows["rmsnorm"], SETTING, seed, 0.001): log(1.0 + d) for seed, d in enumerate(differences, 1)}

    def verdicts(count):
        expected = [Expectation("rmsnorm", "layernorm", "higher", f"claim {i}", "paper") for i in range(count)]
        comparison = Comparison("mean loss", mean_loss, 1.0, " nats", expected)
        section = learning_section(logs, Learning("Title", "Text.", [], CURVES, [comparison]))
        return [claim.verdict for claim in section.claims]

    assert verdicts(1) == ["borne out"]
    assert verdicts(5) == ["not shown after Holm's correction"] * 5


def test_differences_are_relative_in_percent_and_absolute_in_other_units():
    (relative,) = made(rmsnorm=[1.0, 2.0], layernorm=[2.0, 4.0]).claims
    (absolute,) = made(unit=" points", rmsnorm=[1.0, 2.0], layernorm=[2.0, 3.0]).claims
    assert relative.ours == "-50.0 [-50.0, -50.0]% in mean loss, small batches"
    assert absolute.ours == "-1.0 [-1.0, -1.0] points in mean loss, small batches"


def test_a_claim_of_another_setting_or_a_row_that_is_not_there_is_left_out():
    assert made(rmsnorm=[1.0, 2.0]).claims == []
    elsewhere = Expectation("rmsnorm", "layernorm", "lower", "claim", "paper", setting="large")
    logs = {Trial(row, SETTING, seed, 0.001): log(1.0) for row in ROWS for seed in (1, 2)}
    comparison = Comparison("mean loss", mean_loss, 1.0, "%", [elsewhere])
    assert learning_section(logs, Learning("Title", "", [], CURVES, [comparison])).claims == []


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize(("diverged", "other"), [("rmsnorm", "layernorm"), ("layernorm", "rmsnorm")])
def test_a_training_that_diverged_is_named_and_judges_nothing(loss, diverged, other):
    section = made(**{diverged: [1.0, loss, 2.0], other: [1.0, 1.5, 2.0]})
    assert section.rows[0][-1] == "1 of 3 diverged"
    assert section.rows[1][-1] == "1.50 (sd 0.50) nats"
    (claim,) = section.claims
    assert (claim.ours, claim.verdict) == ("a training diverged, small batches", "not shown")
    section.plot(Figure())


def test_without_a_reported_seed_there_is_no_section():
    logs = {Trial(RMSNORM, SETTING, GRID_SEED, 0.001): log(1.0)}
    assert learning_section(logs, Learning("Title", "", [], CURVES, [])) is None


def test_the_picture_has_each_curve_with_the_range_of_the_seeds():
    figure = Figure()
    made(rmsnorm=[1.0, 2.0]).plot(figure)
    losses, errors = figure.axes
    assert list(losses.lines[0].get_ydata()) == pytest.approx([1.6, 1.4])
    assert sorted({round(y, 6) for _, y in losses.collections[0].get_paths()[0].vertices}) == [0.9, 1.1, 1.9, 2.1]
    assert list(errors.lines[0].get_ydata()) == pytest.approx([3, 4])
    assert (losses.get_yscale(), errors.get_yscale()) == ("log", "linear")
