import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.sections.partial import section


def test_points_of_table_2_are_in_the_sweep(results):
    made = section(results)
    assert made.columns == ["p", "k of 16", "k of 32", "k of 64", "dev BLEU", "news BLEU", "web BLEU"]
    assert made.rows == [
        ["6.25%", "1", "2", "4", "20.0", "19.0", "18.0"],
        ["50.00%", "8", "16", "32", "20.0", "19.0", "18.0"],
        ["100.00%", "16", "32", "64", "20.0", "19.0", "18.0"],
    ]


def test_the_plot_says_which_k_each_p_is(results):
    figure = Figure()
    section(results).plot(figure)
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert ticks == ["0.0625\n1, 2, 4", "0.5\n8, 16, 32", "1\n16, 32, 64"]
