import pytest

from experiments.translation.condition import Condition
from experiments.translation.results import choose
from experiments.translation.schedule import grid_runs
from experiments.translation.sections.shared import step_sizes
from tests.experiments.translation.conftest import make_result

ONE = Condition("one", "One", kind="none")
TWO = Condition("two", "Two", kind="rmsnorm")
LIKE = Condition("like", "Like two", kind="rmsnorm", centre=0.2, step_size_of="two")
OWN = Condition("own", "Own", kind="none", options={"learning_rate": 0.5})
CONDITIONS = [ONE, TWO, LIKE, OWN]
SIZES = [0.1, 0.2]


def result(condition, step_size, bleu):
    found = make_result(condition, seed=0, bleu=(bleu, bleu / 2))
    found.log["options"]["learning_rate"] = step_size
    return found


GRID = [result(ONE, 0.1, 5), result(ONE, 0.2, 4), result(TWO, 0.1, 7), result(TWO, 0.2, 8)]


def test_rows_without_a_step_size_are_trained_with_each_on_the_seed_of_the_grid():
    runs = grid_runs(CONDITIONS, SIZES)
    assert [run.name for run in runs] == [
        "one-step-0.1",
        "two-step-0.1",
        "one-step-0.2",
        "two-step-0.2",
    ]


def test_the_best_validation_chooses_for_the_row_and_for_those_that_follow_it():
    assert choose(CONDITIONS, GRID, SIZES) == {ONE: 0.1, TWO: 0.2, LIKE: 0.2, OWN: None}


def test_a_row_waits_for_the_whole_grid():
    assert choose(CONDITIONS, GRID[:3], SIZES) == {ONE: 0.1, OWN: None}


def test_without_a_grid_all_rows_have_the_step_size_of_their_options():
    assert grid_runs(CONDITIONS, []) == []
    assert choose(CONDITIONS, [], []) == dict.fromkeys(CONDITIONS)


def test_the_section_has_the_best_validations():
    made = step_sizes(GRID)
    assert made.columns == ["", "0.1", "0.2"]
    assert made.rows == [["One", "5.0", "4.0"], ["Two", "7.0", "8.0"]]
    assert step_sizes([]) is None


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_row_chooses_unless_it_follows_another_or_has_its_own(condition):
    assert condition.chooses == (condition in (ONE, TWO))
