import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.sections.mean_share import section
from tests.experiments.translation.conftest import ROWS, make_result


def shares(first, last):
    return {"first": dict(zip("ab", first, strict=True)), "last": dict(zip("ab", last, strict=True))}


@pytest.fixture
def measured():
    return [
        make_result(ROWS["rmsnorm"], 1, mean_share=shares([0.01, 0.03], [0.1, 0.5])),
        make_result(ROWS["rmsnorm"], 2, mean_share=shares([0.01, 0.03], [0.3, 0.5])),
    ]


def test_the_table_has_the_mean_over_norms_and_its_range(measured):
    assert section(measured).rows == [["RMSNorm", "2", "2.0% [1.0%, 3.0%]", "35.0% [20.0%, 50.0%]"]]


def test_every_norm_is_drawn_after_the_training(measured):
    figure = Figure()
    section(measured).plot(figure)
    (line,) = figure.axes[0].lines
    assert list(line.get_xdata()) == pytest.approx([0.2, 0.5])


def test_without_measurements_there_is_no_section(results):
    assert section(results) is None
