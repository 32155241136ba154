import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.sections.centre import section


def test_a_moved_row_stands_beside_its_kind(results):
    made = section(results)
    assert made.rows == [
        ["RMSNorm", "0", "20.0", "15.0", "0"],
        ["RMSNorm, elsewhere", "0.25", "20.0", "15.0", "0"],
    ]
    assert made.text[1] == "RMSNorm, elsewhere: 20.0 on the dev set, 20.0 with the ordinary initialisation."


def test_the_moved_curve_is_dashed(results):
    figure = Figure()
    section(results).plot(figure)
    styles = {line.get_label(): line.get_linestyle() for line in figure.axes[0].lines}
    assert styles == {"RMSNorm": "-", "RMSNorm, elsewhere": "--"}
