import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.table2 import section
from tests.experiments.translation.conftest import ROWS, make_result


@pytest.fixture
def rows(results, times):
    made = section(results, times)
    return {row[0]: dict(zip(made.columns, row, strict=True)) for row in made.rows}


def test_the_table_has_only_its_own_rows(rows):
    assert list(rows) == ["Baseline", "LayerNorm", "RMSNorm", "pRMSNorm", "Mine"]


def test_bleu_is_that_of_the_best_validation_and_its_tests(rows):
    assert (rows["RMSNorm"]["dev BLEU"], rows["RMSNorm"]["news BLEU"]) == ("20.0", "19.0")
    assert (rows["Baseline"]["seeds"], rows["Baseline"]["dev BLEU"]) == ("2", "22.0 (sd 2.8)")  # of 20 and 24


def test_time_is_per_thousand_updates_and_the_saving_the_median_of_the_rounds(rows):
    assert rows["RMSNorm"]["s per 1,000 updates"] == "750 [750, 1250]"
    assert rows["RMSNorm"]["saving"].startswith("25.0% [")  # of 0.75, 0.75 and 0.5 of LayerNorm's
    assert rows["LayerNorm"]["saving"] == rows["Baseline"]["saving"] == ""


def test_an_added_kind_has_its_time(results, times):
    times["updates"]["float32"]["mine"] = times["updates"]["float32"]["prmsnorm"]
    made = section(results, times)
    (mine,) = (dict(zip(made.columns, row, strict=True)) for row in made.rows if row[0] == "Mine")
    assert mine["s per 1,000 updates"] == "500 [500, 1000]"
    assert mine["saving"].startswith("50.0% [")  # of 0.5, 0.25 and 1


def test_without_measured_seconds_there_is_only_bleu(results):
    made = section(results, None)
    assert made.columns == ["", "seeds", "dev BLEU", "news BLEU", "web BLEU", "paper: BLEU 2014, 2017"]
    assert "Seconds" not in " ".join(made.text)
    figure = Figure()
    made.plot(figure)
    assert [axes.get_title() for axes in figure.axes] == ["quality"]


def test_without_rows_of_table_2_there_is_no_section(results, times):
    assert section([each for each in results if each.row.section != "table2"], times) is None


def test_savings_that_the_paper_does_not_give_are_left_out(results, times):
    added = results[0]._replace(row=Row("l2norm", "L2-Norm", kind="l2norm"))
    made = section([*results, added], times)
    cells = dict(zip(made.columns, made.rows[-1], strict=True))
    assert (cells[""], cells["paper: s per 1,000"], cells["paper: saving"]) == ("L2-Norm", "482 (sd 19.7)", "")


def test_an_added_row_of_a_known_kind_has_no_published_values(results, times):
    added = results[0]._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    made = section([*results, added], times)
    cells = dict(zip(made.columns, made.rows[-1], strict=True))
    assert cells["saving"].startswith("25.0%")
    assert (cells["paper: saving"], cells["paper: BLEU 2014, 2017"]) == ("", "")


def test_different_options_are_named(results, times):
    assert not any("options of" in text for text in section(results, times).text)
    options = results[0].log["options"]
    options.update(learning_rate=0.5, adam_epsilon="tiny")
    assert section(results, times).text[1] == (
        "All rows have the options of LayerNorm, apart from the norm. Exceptions: Baseline has `adam_epsilon` tiny "
        "instead of the default and `learning_rate` 0.5 instead of the default."
    )


def test_rows_have_the_papers_values(rows):
    assert rows["RMSNorm"]["paper: s per 1,000"] == "501 (sd 11.8)"
    assert rows["RMSNorm"]["paper: saving"] == "24.7%"
    assert rows["RMSNorm"]["paper: BLEU 2014, 2017"] == "22.4, 23.7"


def test_a_row_without_times_and_published_values_has_only_bleu(rows):
    assert rows["Mine"]["dev BLEU"] == "20.0"
    assert rows["Mine"]["s per 1,000 updates"] == rows["Mine"]["paper: saving"] == ""


def test_the_text_says_how_time_was_measured_and_compares_the_costs(results, times):
    _, measured, compared, _ = section(results, times).text
    assert "on one thread, with nothing else running" in measured
    assert "RMSNorm takes 0.75 [0.50, 0.75] of LayerNorm's time here and 0.75 in the paper" in compared
    assert "The saving of 25.0% is more than the noise of the rounds" in compared
    assert "LayerNorm takes 2.00 [1.00, 4.00] times the Baseline's time here and 1.67 times in the paper" in compared


def test_a_saving_within_the_noise_is_reported_as_noise(results, times):
    times["updates"]["float32"]["rmsnorm"]["rounds"] = [0.9, 2.2, 0.5]  # 0.9, 1.1 and 1 of LayerNorm's
    assert "The saving of 0.0% is within the noise" in section(results, times).text[2]


@pytest.mark.parametrize(
    ("layernorm", "said"),
    [
        ([19.0, 19.5], "-0.2 [-3.4, +2.9] BLEU (95% interval). 2 seeds show neither a difference nor equality"),
        ([19.0, 19.0], "+0.0 [+0.0, +0.0] BLEU (95% interval). They count as equal: the 90% interval lies within"),
        ([15.0, 15.1], "+3.9 [+3.3, +4.6] BLEU (95% interval). 2 seeds show a difference."),
    ],
)
def test_kinds_are_compared_over_the_seeds_they_share(layernorm, said):
    rows = {"rmsnorm": [19.0, 19.0], "layernorm": layernorm}
    results = [
        make_result(ROWS[kind], seed, bleu=[bleu + 1])
        for kind, found in rows.items()
        for seed, bleu in enumerate(found)
    ]
    assert f"RMSNorm minus LayerNorm on news, paired over 2 seeds: {said}" in section(results, None).text[1]


def test_the_text_names_the_tested_checkpoints(results):
    text = section(results, None).text[0]
    assert "LayerNorm, seed 1 (update 200)" in text
    assert "Baseline, seed 2" not in text  # its last validation is its best


def test_the_plot_has_our_figures_and_the_published_ones(results, times):
    figure = Figure()
    section(results, times).plot(figure)
    quality, speed = (
        [line.get_xdata()[0] for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
        for axes in figure.axes
    )
    assert not quality
    assert speed == pytest.approx([399 / 665, 501 / 665, 493 / 665])
    ours = [container.lines[0].get_xdata()[0] for container in figure.axes[1].containers]
    assert ours == [0.5, 1.0, 0.75, 0.5]
    (segment,) = figure.axes[1].collections[-1].get_segments()
    np.testing.assert_allclose(segment[:, 0], [0.25, 1])  # pRMSNorm: of 0.25, 0.5 and 1


def test_the_plot_writes_scores_far_below_as_text(results):
    added = make_result(Row("far", "Far", build=len), bleu=[3.0])
    figure = Figure()
    section([results[1], added], None).plot(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["◄ 2.0 to 3.0"]
    assert figure.axes[0].get_xlim()[0] > 18
