import math
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from experiments.reporting.differences import differences_section
from experiments.reporting.judging import Hypothesis, Question, judge

CLAIM = Hypothesis("a", "b", "equal", "A is so", "a table", margin=0.5)
ASKED = Question(**vars(CLAIM), pair="A minus B", differences=[0.1, -0.1, 0.0], unit=" BLEU")


def verdict(outcome, differences, **options):
    (found,) = judge([replace(ASKED, outcome=outcome, differences=differences, **options)])
    return found.claim.verdict


@pytest.mark.parametrize(
    ("outcome", "differences", "said"),
    [
        # The t quantile of 90% and two degrees of freedom is 2.92; the standard error is 0.1 /
        # sqrt(3).
        ("equal", [0.1, -0.1, 0.0], "shown: 90% interval [-0.17, +0.17], margin ±0.5"),
        ("equal", [0.4, 0.2, 0.3], "shown: 90% interval [+0.13, +0.47], margin ±0.5; higher"),
        ("equal", [0.5, 0.3, 0.4], "not shown: 90% interval [+0.23, +0.57], margin ±0.5; higher"),
        ("equal", [1.0, -1.0, 0.0], "not shown: 90% interval [-1.69, +1.69], margin ±0.5"),
        ("not lower", [1.0, 2.0, 3.0], "shown: 90% interval [+0.31, +3.69], margin -0.5"),
        (
            "not lower",
            [-0.5, -0.3, -0.4],
            "not shown: 90% interval [-0.57, -0.23], margin -0.5; lower",
        ),
        ("not higher", [-1.0, -2.0, -3.0], "shown: 90% interval [-3.69, -0.31], margin +0.5"),
        ("lower", [-0.7, -0.8, -0.6], "shown: 90% interval [-0.87, -0.53], margin -0.5; lower"),
        ("higher", [0.6, 0.7, 0.5], "not shown: 90% interval [+0.43, +0.77], margin +0.5; higher"),
        ("lower", [-1.0], "not judged before all seeds are there"),
        ("lower", [-1.0, math.nan, 2.0], "not shown"),
    ],
)
def test_a_claim_is_judged_by_differences_over_the_seeds(outcome, differences, said):
    assert verdict(outcome, differences) == said


@pytest.mark.parametrize(
    ("outcome", "differences", "said"),
    [
        ("lower", [-1.0, -1.1, -0.9], "shown"),
        ("higher", [-1.0, -1.1, -0.9], "the opposite: lower"),
        ("higher", [-1.0, 1.1, 0.9], "not shown"),
    ],
)
def test_a_difference_without_a_margin_is_of_any_size(outcome, differences, said):
    assert verdict(outcome, differences, margin=0) == said


def test_nothing_is_judged_before_all_planned_seeds_are_there():
    assert (
        verdict("lower", [-1.0, -1.1, -0.9], planned=4) == "not judged before all seeds are there"
    )
    assert judge([replace(ASKED, planned=8)])[0].ours == "3 seeds of 8"


def test_claims_of_a_family_are_corrected_for_their_number_equality_too():
    """The p-values 0.013 and 0.015 are significant alone, and not as one of five."""
    higher = replace(ASKED, outcome="higher", margin=0, differences=[0.9, 1.4, 1.2, 0.5])
    equal = replace(ASKED, differences=[0.3, 0.05, -0.3, 0.0])
    for asked, place in ((higher, ""), (equal, ": 90% interval [-0.28, +0.30], margin ±0.5")):
        assert judge([asked])[0].verdict == f"shown{place}"
        assert {each.verdict for each in judge([asked] * 5)} == {
            f"not shown after Holm's correction{place}"
        }
        others = [replace(asked, family=str(number)) for number in range(5)]
        assert {each.verdict for each in judge(others)} == {f"shown{place}"}


def test_the_section_has_a_row_a_claim_and_marks_for_each_question():
    section = differences_section(
        judge([ASKED, replace(ASKED, unit="% in loss", planned=9)]), "Text."
    )
    assert section.rows[0][:4] == ["A minus B, BLEU", "equal", "3", "+0.10, -0.10, +0.00"]
    assert section.rows[1][1:] == [
        "equal",
        "3",
        "",
        "",
        "",
        "",
        "",
    ]  # nothing is shown before all seeds are there
    assert [claim.ours for claim in section.claims] == [
        "+0.0 [-0.2, +0.2] BLEU, 3 seeds",
        "3 seeds of 9",
    ]
    figure = Figure()
    section.plot(figure)
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "difference, BLEU",
        "difference,% in loss",
    ]
    assert differences_section([], "Text.") is None


@pytest.mark.parametrize("order", [1, -1])
def test_the_margin_is_drawn_if_another_claim_about_the_same_difference_has_none(order):
    equal = ASKED
    lower = replace(ASKED, claim="A is lower", outcome="lower", margin=0.0)
    figure = Figure()
    differences_section(judge([equal, lower][::order]), "").plot(figure)
    (axes,) = figure.axes
    bands = [
        path for each in axes.collections for path in each.get_paths() if len(path.vertices) > 2
    ]
    assert [(path.get_extents().x0, path.get_extents().x1) for path in bands] == [(-0.5, 0.5)]


@pytest.mark.parametrize(
    ("unit", "margin", "left", "right"),
    [(" BLEU", 0.5, "← B better", "B worse →"), (" nats of loss", 0.0, "← B worse", "B better →")],
)
def test_a_picture_names_the_sides_and_only_what_it_draws(unit, margin, left, right):
    figure = Figure()
    differences_section(
        judge([replace(ASKED, unit=unit, margin=margin, outcome="lower")]), ""
    ).plot(figure)
    assert [text.get_text() for text in figure.axes[0].texts][:2] == [left, right]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["margin"] * bool(margin) + ["each seed", "95% interval", "90% interval"]


def test_a_picture_of_several_second_kinds_names_their_place():
    figure = Figure()
    differences_section(judge([ASKED, replace(ASKED, pair="A minus C")]), "").plot(figure)
    assert figure.axes[0].texts[0].get_text() == "← the one after “minus” better"


def test_the_legend_has_what_any_part_of_a_picture_draws():
    figure = Figure()
    without = replace(ASKED, margin=0.0, outcome="lower")
    differences_section(judge([without, replace(ASKED, unit="% in loss")]), "").plot(figure)
    (legend,) = figure.legends
    assert "margin" in [text.get_text() for text in legend.get_texts()]
