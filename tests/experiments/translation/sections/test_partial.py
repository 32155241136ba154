import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.partial import section
from tests.experiments.translation.conftest import ROWS, make_result


def test_points_of_table_2_are_in_the_sweep(results):
    made = section(results)
    assert made.columns[:7] == ["p", "k of 16", "k of 32", "k of 64", "seeds", "dev BLEU", "news BLEU"]
    assert [row[:8] for row in made.rows] == [
        ["6.25%", "1", "2", "4", "1", "20.0", "19.0", "18.0"],
        ["50.00%", "8", "16", "32", "1", "20.0", "19.0", "18.0"],
        ["100.00%", "16", "32", "64", "1", "20.0", "19.0", "18.0"],
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


def test_the_plot_has_every_seed_and_their_mean(results):
    half = next(each for each in results if each.row.name == "half")
    line, marks, *_ = plotted([*results, make_result(half.row, 2, bleu=[12.0])]).lines
    assert list(line.get_ydata()) == [19.0, 15.0, 19.0]
    assert list(zip(marks.get_xdata(), marks.get_ydata(), strict=True))[1:3] == [(0.5, 19.0), (0.5, 11.0)]


@pytest.mark.parametrize(
    ("bleu", "shown", "verdict"),
    [
        ((20.1, 21.0, 21.9), "no difference", "borne out"),
        ((18.1, 19.0, 19.9), "worse", "not borne out"),
        ((19.6, 20.6, 21.59), "no difference", "borne out"),  # 0.4 below, with an interval that excludes 0
        ((19.4, 20.4, 21.39), "worse", "not borne out"),
        ((22.1, 23.0, 23.9), "better", "borne out"),
        ((18.0, 21.0, 25.0), "not shown by 3 seeds", "not shown by 3 seeds"),
        ((20.0,), "not shown by 1 seed", "not shown by 1 seed"),
    ],
)
def test_a_part_is_compared_with_all_entries_seed_by_seed(bleu, shown, verdict):
    whole = [make_result(ROWS["rmsnorm"], seed, bleu=[best]) for seed, best in enumerate((20, 21, 22), 1)]
    half = [make_result(ROWS["half"], seed, bleu=[best]) for seed, best in enumerate(bleu, 1)]
    made = section([*whole, *half])
    assert [row[-1] for row in made.rows] == [shown, ""]
    (claim,) = made.claims
    assert claim.verdict == verdict


def test_small_p_are_not_what_the_claim_is_about(results):
    tiny = results[0]._replace(row=Row("tiny", "", build=len, partial=0.001))
    (claim,) = section([*results, tiny]).claims
    assert claim.ours == "BLEU minus RMSNorm's: +0.0 (1 seed) at 0.0625; +0.0 (1 seed) at 0.5"


def plotted(results):
    figure = Figure()
    section(results).plot(figure)
    return figure.axes[0]
