import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.condition import Condition
from experiments.translation.sections.partial import section
from tests.experiments.translation.conftest import make_result

USUAL = Condition("rmsnorm", "RMSNorm", kind="rmsnorm")
TENTH = Condition("tenth", "a tenth", build=lambda name: None, partial=0.1, step_size_of="rmsnorm")


def seeds(condition, *bleu):
    return [make_result(condition, seed, bleu=[best]) for seed, best in enumerate(bleu, 1)]


def test_a_part_is_compared_with_rmsnorm_seed_by_seed():
    made = section([*seeds(USUAL, 20, 21, 23), *seeds(TENTH, 19, 20, 22, 40)])
    # BLEU on the two test sets is 1 and 2 below the best of the validations.
    assert made.columns[:4] == ["", "k of 16", "k of 32", "k of 64"]
    assert made.rows == [
        ["a tenth", "2", "4", "7", "4", "25.2 (sd 9.9)", "23.8 (sd 9.9)", "-1.00 [-1.00, -1.00]"]
    ]
    assert made.data == {"tenth": {"seeds": 4, "differences": [-1, -1, -1]}}
    figure = Figure()
    made.plot(figure)
    (axes,) = figure.axes
    assert [-1, -1, -1] in [list(line.get_xdata()) for line in axes.lines]
    assert [text.get_text() for text in axes.texts][:2] == ["← RMSNorm better", "RMSNorm worse →"]
    assert not made.claims


def test_a_single_seed_has_no_interval():
    made = section([*seeds(USUAL, 20), *seeds(TENTH, 19)])
    assert made.rows[0][-1] == ""
    made.plot(Figure())


def test_without_a_part_there_is_no_section(results):
    assert (
        section([each for each in results if each.condition.section in ("main", "centre")]) is None
    )
