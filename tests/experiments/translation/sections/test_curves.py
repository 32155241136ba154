import pytest
from matplotlib.figure import Figure

from experiments.translation.sections.curves import curve, section
from tests.experiments.translation.conftest import CONDITIONS, make_result


def test_a_curve_ends_with_the_shortest_seed(results):
    assert curve([each for each in results if each.condition.kind == "none"]) == {
        100: [10.0, 14.0],
        200: [20.0, 24.0],
    }


def test_an_added_kind_has_its_own_time_and_colour(results, times):
    times["updates"]["float32"]["mine"] = {"rounds": [0.5, 0.6, 9.0]}
    figure = Figure()
    section(results, [times]).plot(figure)
    by_updates = {line.get_label(): line for line in figure.axes[0].lines}
    by_time = {line.get_label(): line for line in figure.axes[1].lines}
    assert list(by_time["Mine"].get_xdata()) == pytest.approx([1, 2, 3])
    assert list(by_time["LayerNorm"].get_xdata()) == pytest.approx([100 / 60, 200 / 60, 300 / 60])
    assert by_time.keys() == by_updates.keys()
    assert len({line.get_color() for line in by_updates.values()}) == len(by_updates)


def test_a_row_that_stopped_early_has_empty_cells(results, times):
    made = section(results, [times])
    conditions = {cells[0]: cells[1:] for cells in made.rows}
    assert made.columns == ["dev BLEU after N updates", "N = 100", "N = 200", "N = 300"]
    assert conditions["Baseline"] == ["12.0", "22.0", ""]
    assert conditions["RMSNorm"] == ["10.0", "20.0", "15.0"]


def test_a_long_training_has_a_limited_number_of_columns(times):
    made = section(
        [make_result(CONDITIONS["rmsnorm"], bleu=[float(number) for number in range(25)])], [times]
    )
    assert made.columns[1:] == [f"N = {update:,}" for update in range(100, 2501, 300)]
    assert made.rows[0][-1] == "24.0"
    assert len(made.data["rmsnorm"]["bleu"]) == 25


def test_training_losses_are_drawn_and_the_published_told(times):
    result = make_result(CONDITIONS["layernorm"])
    for number, each in enumerate(result.log["validations"], 1):
        each["train_loss"] = 6 / number
    made = section([result], [times])
    assert "layernorm 9.18 at first, 4.27" in made.text[0]
    figure = Figure()
    made.plot(figure)
    assert list(figure.axes[2].lines[0].get_ydata()) == [6, 3, 2]


def test_without_rows_of_table_2_there_is_no_section(results, times):
    assert section([each for each in results if each.condition.section != "main"], [times]) is None


@pytest.mark.parametrize("worst, scale", [(8.0, "linear"), (80.0, "log")])
def test_losses_that_diverge_make_the_axis_logarithmic(worst, scale):
    results = [
        make_result(condition) for condition in (CONDITIONS["none"], CONDITIONS["layernorm"])
    ]
    for result, loss in zip(results, (worst, 4.0), strict=True):
        for each in result.log["validations"]:
            each["train_loss"] = loss
    figure = Figure()
    section(results, []).plot(figure)
    assert figure.axes[2].get_yscale() == scale
