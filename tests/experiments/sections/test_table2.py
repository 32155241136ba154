import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.sections.table2 import section


@pytest.fixture
def rows(results, times):
    made = section(results, times)
    return {row[0]: dict(zip(made.columns, row, strict=True)) for row in made.rows}


def test_only_rows_of_the_table_are_in_it(rows):
    assert list(rows) == ["Baseline", "LayerNorm", "RMSNorm", "pRMSNorm", "Mine"]


def test_bleu_is_that_of_the_best_validation_and_its_tests(rows):
    assert (rows["RMSNorm"]["dev BLEU"], rows["RMSNorm"]["news BLEU"]) == ("20.0", "19.0")
    assert (rows["Baseline"]["seeds"], rows["Baseline"]["dev BLEU"]) == ("2", "22.0 ± 2.8")  # of 20 and 24


def test_time_is_per_thousand_updates_and_the_saving_the_median_of_the_rounds(rows):
    assert rows["RMSNorm"]["s per 1,000 updates"] == "750 ± 250"
    assert rows["RMSNorm"]["saving"] == "25.0%"  # of 0.75, 0.75 and 0.5
    assert rows["LayerNorm"]["saving"] == rows["Baseline"]["saving"] == ""


def test_the_paper_stands_beside(rows):
    assert rows["RMSNorm"]["paper: s per 1,000"] == "501 ± 11.8"
    assert rows["RMSNorm"]["paper: saving"] == "24.7%"
    assert rows["RMSNorm"]["paper: BLEU 2014, 2017"] == "22.4, 23.7"


def test_a_row_that_nobody_timed_or_published_has_bleu_alone(rows):
    assert rows["Mine"]["dev BLEU"] == "20.0"
    assert rows["Mine"]["s per 1,000 updates"] == rows["Mine"]["paper: saving"] == ""


def test_the_text_compares_the_costs(results, times):
    assert "RMSNorm takes 0.75 of LayerNorm's time here and 0.75 in the paper" in section(results, times).text[2]
    assert "LayerNorm takes 2.00 times the Baseline's here and 1.67 times there" in section(results, times).text[2]


def test_the_plot_has_the_published_figures_beside_ours(results, times):
    figure = Figure()
    section(results, times).plot(figure)
    quality, speed = (
        [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())]
        for axes in figure.axes
    )
    assert quality == [21.7, 22.6, 22.4, 22.6]
    assert speed == pytest.approx([399 / 665, 1, 501 / 665, 493 / 665])
    assert [bar.get_width() for bar in figure.axes[1].patches] == [0.5, 1.0, 0.75, 0.5]
