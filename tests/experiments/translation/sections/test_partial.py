import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.partial import section
from tests.experiments.translation.conftest import make_result


def test_points_of_table_2_are_in_the_sweep(results):
    made = section(results)
    assert made.columns == ["p", "k of 16", "k of 32", "k of 64", "dev BLEU", "news BLEU", "web BLEU"]
    assert made.rows == [
        ["6.25%", "1", "2", "4", "20.0", "19.0", "18.0"],
        ["50.00%", "8", "16", "32", "20.0", "19.0", "18.0"],
        ["100.00%", "16", "32", "64", "20.0", "19.0", "18.0"],
    ]


def test_without_a_point_of_its_own_there_is_no_sweep(results):
    assert section([each for each in results if each.row.section == "main"]) is None
    (row,) = section([each for each in results if each.row.name == "half"]).rows
    assert row[0] == "50.00%"


def test_an_added_row_of_the_same_kind_is_not_a_point(results):
    added = results[0]._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    assert section([*results, added]).rows == section(results).rows


def test_the_plot_labels_each_p_with_its_k(results):
    axes = plotted(results)
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks == ["0.0625\n1\n2\n4", "0.5\n8\n16\n32", "1\n16\n32\n64"]
    assert not axes.patches


def test_the_plot_shades_where_every_norm_has_the_same_k(results):
    tiny = results[0]._replace(row=Row("tiny", "", build=len, partial=0.001))
    (shaded,) = plotted([*results, tiny]).patches
    assert shaded.get_x() + shaded.get_width() == pytest.approx(1 / 64)
    assert shaded.get_x() < 0.001
    assert shaded.get_label() == "p up to 1/64: k = 1 in every norm"
    assert "Up to p = 1/64 every norm has k = 1" in section(results).text[0]


def test_the_plot_has_the_first_seed_as_a_line_and_the_others_as_points(results):
    half = next(each for each in results if each.row.name == "half")
    line, others, *_ = plotted([*results, make_result(half.row, 2, bleu=[12.0])]).lines
    assert list(line.get_ydata()) == [19.0, 19.0, 19.0]
    assert (list(others.get_xdata()), list(others.get_ydata())) == ([0.5], [11.0])


def test_small_p_are_judged_as_far_as_the_seeds_reach(results):
    (claim,) = section(results).claims
    assert claim.ours == "BLEU by p: 19.0 at 0.0625, 19.0 at 0.5, 19.0 at 1; seed 1"
    assert claim.verdict == "not shown by 1 seed"


def plotted(results):
    figure = Figure()
    section(results).plot(figure)
    return figure.axes[0]
