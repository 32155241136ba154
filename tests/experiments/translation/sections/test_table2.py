import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.table2 import section


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
    assert rows["RMSNorm"]["saving"] == "25.0%"  # of 0.75, 0.75 and 0.5 of LayerNorm's
    assert rows["LayerNorm"]["saving"] == rows["Baseline"]["saving"] == ""


def test_an_added_kind_has_its_time(results, times):
    times["updates"]["float32"]["mine"] = times["updates"]["float32"]["prmsnorm"]
    made = section(results, times)
    (mine,) = (dict(zip(made.columns, row, strict=True)) for row in made.rows if row[0] == "Mine")
    assert (mine["s per 1,000 updates"], mine["saving"]) == ("500 ± 250", "50.0%")  # of 0.5, 0.25 and 1


def test_without_measured_seconds_there_is_bleu_alone(results):
    made = section(results, None)
    assert made.columns == ["", "seeds", "dev BLEU", "news BLEU", "web BLEU", "paper: BLEU 2014, 2017"]
    assert "Seconds" not in " ".join(made.text)
    figure = Figure()
    made.plot(figure)
    assert [axes.get_xlabel() for axes in figure.axes] == ["BLEU"]


def test_there_must_be_a_row(results, times):
    assert section([each for each in results if each.row.section != "table2"], times) is None


def test_only_savings_that_are_published_are(results, times):
    added = results[0]._replace(row=Row("l2norm", "L2-Norm", kind="l2norm"))
    made = section([*results, added], times)
    cells = dict(zip(made.columns, made.rows[-1], strict=True))
    assert (cells[""], cells["paper: s per 1,000"], cells["paper: saving"]) == ("L2-Norm", "482 ± 19.7", "")


def test_an_added_row_of_a_known_kind_has_nothing_published(results, times):
    added = results[0]._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    made = section([*results, added], times)
    cells = dict(zip(made.columns, made.rows[-1], strict=True))
    assert (cells["saving"], cells["paper: saving"], cells["paper: BLEU 2014, 2017"]) == ("25.0%", "", "")


def test_options_that_are_not_the_same_for_all_are_told(results, times):
    assert not any("options of" in text for text in section(results, times).text)
    options = results[0].log["options"]
    options.update(learning_rate=0.5, adam_epsilon="tiny")
    assert section(results, times).text[1] == (
        "Besides their norm, all rows are trained with the options of LayerNorm, but Baseline has `adam_epsilon` tiny "
        "instead of the default and `learning_rate` 0.5 instead of the default."
    )


def test_the_paper_stands_beside(rows):
    assert rows["RMSNorm"]["paper: s per 1,000"] == "501 ± 11.8"
    assert rows["RMSNorm"]["paper: saving"] == "24.7%"
    assert rows["RMSNorm"]["paper: BLEU 2014, 2017"] == "22.4, 23.7"


def test_a_row_that_nobody_timed_or_published_has_bleu_alone(rows):
    assert rows["Mine"]["dev BLEU"] == "20.0"
    assert rows["Mine"]["s per 1,000 updates"] == rows["Mine"]["paper: saving"] == ""


def test_the_text_says_how_time_was_taken_and_compares_the_costs(results, times):
    _, measured, compared = section(results, times).text
    assert "on one thread while nothing else trains" in measured
    assert "RMSNorm takes 0.75 of LayerNorm's time here and 0.75 in the paper" in compared
    assert "LayerNorm takes 2.00 times the Baseline's here and 1.67 times there" in compared


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
    (segment,) = figure.axes[1].collections[-1].get_segments()
    np.testing.assert_allclose(segment[:, 0], [0.375, 0.75])  # pRMSNorm: quartiles of 0.25, 0.5 and 1
