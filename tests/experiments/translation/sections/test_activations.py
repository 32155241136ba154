from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.published import ACTIVATIONS
from experiments.translation.row import Row
from experiments.translation.sections.activations import section
from tests.experiments.translation.conftest import ROWS, make_result


def figures(shift):
    numbers = {"mean": [shift + 0.125 * at for at in range(5)], "std": [1.25, 2.5, 1.5, 1.75, 9.0]}
    positions = {"positions": ["1", "2", "3", "4", "all"], "tokens": [3, 3, 3, 2, 1234]}
    return {**positions, **numbers, "second": {"mean": [-0.001] * 5, "std": [0.5] * 5}}


@pytest.fixture
def measured():
    return [
        make_result(ROWS[kind], activations=figures(shift))
        for kind, shift in (("none", 0.0), ("prmsnorm", -1.0), ("mine", 1.0))
    ]


def test_a_row_has_both_grus_and_its_published_values(measured):
    made = section(measured)
    assert made.columns[1:] == ["position 1", "position 2", "position 3", "position 4", "all positions"]
    assert [row[0] for row in made.rows] == [
        "Baseline, first GRU",
        "Baseline, second GRU",
        "Baseline, published",
        "pRMSNorm, first GRU",
        "pRMSNorm, second GRU",
        "Mine, first GRU",
        "Mine, second GRU",
    ]
    assert made.rows[0][1:3] == ["0.00 (1.25)", "0.12 (2.50)"]
    assert made.rows[1][1] == "0.00 (0.50)"
    assert made.rows[2][1] == "-2.60 (7.35)"
    assert made.data.keys() == {"baseline", "prmsnorm", "mine"}


def test_the_text_has_the_measured_values(measured):
    made = section(measured)
    assert "1,234 target positions of the 3 sentences" in made.text[1]
    assert "1.25 to 2.50 for Baseline; 1.25 to 2.50 for pRMSNorm" in made.text[2]
    assert " In the paper it is 2.33 to 7.35 for Baseline." in made.text[2]


def test_the_plot_has_our_values_and_the_published_ones(measured):
    figure = Figure()
    section(measured).plot(figure)
    ours, published = figure.axes
    assert [len(axes.lines) for axes in (ours, published)] == [3, 1]
    assert tuple(published.lines[0].get_ydata()) == ACTIVATIONS["baseline"]["std"]
    colours = [line.get_color() for line in ours.lines]
    assert colours[0] == published.lines[0].get_color()
    assert len(set(colours)) == 3


def test_without_rows_of_the_paper_only_our_values_are_plotted(measured):
    made = section(measured[2:])
    assert made.text[2].endswith("1.25 to 2.50 for Mine.")
    figure = Figure()
    made.plot(figure)
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    ("first", "last", "verdict"),
    [
        (7.0, 9.5, "the same direction, not shown by 1 seed"),
        (1.0, 9.5, "both directions, not shown by 1 seed"),
        (7.0, 8.5, "both directions, not shown by 1 seed"),
        (1.0, 8.5, "the opposite direction, not shown by 1 seed"),
    ],
)
def test_the_papers_claim_is_judged_by_models_that_learn(first, last, verdict):
    rows = [Row(f"{kind}-recipe", kind, kind=kind) for kind in ("none", "layernorm", "rmsnorm")]
    results = [make_result(row, activations=figures(0.0)) for row in rows]
    found = results[0].log["activations"]["std"]
    found[0], found[-1] = first, last
    (claim,) = section(results).claims
    assert claim.paper == (
        "from 7.35 to 1.19 (LayerNorm) and 1.27 (RMSNorm) at position 1, from 3.04 to 1.51 (LayerNorm) and 1.50 "
        "(RMSNorm) over all positions"
    )
    assert claim.ours == (
        f"from {first:.2f} to 1.25 (LayerNorm) and 1.25 (RMSNorm) at position 1, from {last:.2f} to 9.00 (LayerNorm) "
        "and 9.00 (RMSNorm) over all positions, 1 seed"
    )
    assert claim.verdict == verdict


def test_the_text_says_after_which_update_a_model_was_measured(measured):
    late = make_result(ROWS["rmsnorm"], bleu=[1.0, 2.0, 3.0], activations=figures(0.0))
    told = section([*measured, late]).text[1]
    assert "of update 200 for Baseline, pRMSNorm, Mine; update 300 for RMSNorm. One seed." in told


def test_without_results_there_is_no_section():
    assert section([make_result(ROWS["none"])]) is None


def test_a_row_with_its_own_recipe_has_the_papers_name_beside_published_values(measured):
    own = [each._replace(row=replace(each.row, label=f"{each.row.label} (own recipe)")) for each in measured]
    made = section(own)
    assert [row[0] for row in made.rows[:3]] == [
        "Baseline (own recipe), first GRU",
        "Baseline (own recipe), second GRU",
        "Baseline, published",
    ]
    assert made.text[2].endswith(" In the paper it is 2.33 to 7.35 for Baseline.")
