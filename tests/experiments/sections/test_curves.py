import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.sections.curves import curve, section


def test_a_curve_is_the_mean_of_its_seeds_as_far_as_all_have_come(results):
    assert curve([each for each in results if each.row.kind == "none"]) == {100: 12.0, 200: 22.0}


def test_time_is_updates_times_measured_seconds(results, times):
    figure = Figure()
    section(results, times).plot(figure)
    lines = {line.get_label(): line.get_xdata() for line in figure.axes[1].lines}
    assert list(lines["LayerNorm"]) == pytest.approx([100 / 60, 200 / 60, 300 / 60])
    assert "Mine" not in lines


def test_a_row_that_stopped_early_has_no_further_cells(results, times):
    rows = {row[0]: row[1:] for row in section(results, times).rows}
    assert rows["Baseline"] == ["12.0", "22.0", ""]
    assert rows["RMSNorm"] == ["10.0", "20.0", "15.0"]
