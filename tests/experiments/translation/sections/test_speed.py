import itertools

from experiments.translation.condition import Condition
from experiments.translation.runs import SECOND_LAYERNORM
from experiments.translation.sections.shared import speed_of
from tests.experiments.translation.conftest import make_result


def cells_of(made):
    return {cells[0]: cells[1:] for cells in made.rows}


def test_rows_have_their_time_and_the_papers_ratio(results, times):
    conditions = cells_of(speed_of(results, [times]))
    assert conditions["RMSNorm"] == [
        "750.0",
        "0.75 [0.50, 0.75]",
        "0.75",
    ]  # the paper's: 501 of 665
    assert conditions["without a norm"][-1] == "0.60"
    assert "Mine" not in conditions  # it was not timed
    assert len(speed_of(results, [times]).claims) == 2  # RMSNorm and pRMSNorm


def test_an_added_kind_has_its_time_and_no_published_one(results, times):
    times["updates"]["float32"]["mine"] = times["updates"]["float32"]["prmsnorm"]
    assert cells_of(speed_of(results, [times]))["Mine"] == ["500.0", "0.50 [0.25, 1.00]", ""]


def test_without_measured_seconds_there_is_no_speed_of(results, times):
    assert speed_of(results, []) is None
    assert speed_of([each for each in results if each.condition.section != "main"], [times]) is None
    del times["updates"]["float32"][SECOND_LAYERNORM]  # as before LayerNorm was timed twice
    assert speed_of(results, [times]) is None


def test_a_kind_is_shown_once_however_many_rows_have_it(times):
    conditions = [
        Condition(f"{position}-{kind}", f"{kind}, {position}", kind=kind, model_type="transformer")
        for position, kind in itertools.product(("post", "pre"), ("layernorm", "rmsnorm"))
    ]
    made = speed_of([make_result(condition) for condition in conditions], [times])
    assert [cells[0] for cells in made.rows] == [
        "layernorm, post",
        "rmsnorm, post",
        "LayerNorm, a second model",
    ]
    assert made.rows[1][-1] == "0.93"  # 231 of 248


def test_the_text_says_how_time_was_measured(results, times):
    assert "0123456789ab on 1 thread" in speed_of(results, [times]).text[0]
