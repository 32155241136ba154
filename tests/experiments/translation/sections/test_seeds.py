import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.reporting.intervals import equality_power, holm, t_test
from experiments.translation.row import Row
from experiments.translation.sections.seeds import section
from tests.experiments.translation.conftest import ROWS, make_result


def trained(**rows):
    """Returns a result for each BLEU on the first test set, by the kind of its row; seeds count from 1."""
    return [
        make_result(ROWS[kind], seed, bleu=[bleu + 1])
        for kind, found in rows.items()
        for seed, bleu in enumerate(found, 1)
    ]


@pytest.mark.parametrize(
    ("layernorm", "cells", "verdict"),
    [
        (
            [19.0, 19.5],
            ["-0.25 [-3.43, +2.93]", "[-1.83, +1.33]", "0.500", "0.500", "neither"],
            "not shown: 90% interval [-1.83, +1.33] not within ±0.5 BLEU",
        ),
        (
            [19.0, 19.0],
            ["+0.00 [+0.00, +0.00]", "[+0.00, +0.00]", "1.000", "1.000", "equal"],
            "borne out: 90% interval [+0.00, +0.00] within ±0.5 BLEU",
        ),
        ([15.0, 15.1], ["+3.95 [+3.31, +4.59]", "[+3.63, +4.27]", "0.008", "0.008", "better"], "not borne out: better"),
    ],
)
def test_kinds_are_compared_over_the_seeds_they_share(layernorm, cells, verdict):
    made = section(trained(rmsnorm=[19.0, 19.0, 5.0], layernorm=layernorm))
    (row,) = made.rows
    assert row[:2] == ["RMSNorm minus LayerNorm", "2"]
    assert row[3:8] == cells
    (claim,) = made.claims
    assert claim.verdict == verdict
    assert claim.paper == "BLEU 22.4 and 23.7 against 22.6 and 23.6 (2014, 2017)"


def test_kinds_that_the_paper_does_not_compare_have_no_published_values():
    rows = [Row(f"pre-{kind}", kind, kind=kind, model_type="transformer") for kind in ("layernorm", "rmsnorm")]
    made = section([make_result(row, seed, bleu=[20]) for row in rows for seed in (1, 2)])
    (claim,) = made.claims
    assert (claim.claim, claim.paper) == ("rmsnorm translates as well as layernorm", "not in the paper")
    made.plot(Figure())


def test_one_seed_shows_neither():
    made = section(trained(rmsnorm=[19.0], layernorm=[18.0]))
    assert made.rows == [["RMSNorm minus LayerNorm", "1", "+1.00", "", "", "", "", "neither", "+1.0 (1 seed)"]]
    assert made.claims[0][2:] == ("+1.0 BLEU, 1 seed", "not shown by 1 seed")


def test_p_is_adjusted_for_all_claims():
    gains = {"rmsnorm": [19.0, 20.0, 21.5], "layernorm": [19.5, 20.0, 21.0], "none": [15.0, 16.5, 17.0]}
    made = section(trained(**gains))
    pairs = [("rmsnorm", "layernorm"), ("layernorm", "none"), ("rmsnorm", "none")]
    p = [t_test([a - b for a, b in zip(gains[one], gains[other], strict=True)]) for one, other in pairs]
    assert [row[5] for row in made.rows] == [f"{each:.3f}" for each in p]
    assert [row[6] for row in made.rows] == [f"{each:.3f}" for each in holm(p)]
    assert "Holm's correction for the 3 claims" in made.text[0]


@pytest.mark.parametrize("rmsnorm", [[19.0, 20.0, 21.0], [19.75, 20.25, 20.75]])
def test_the_text_says_how_many_seeds_show_equality(rmsnorm):
    made = section(trained(rmsnorm=rmsnorm, layernorm=[20.0, 20.0, 20.0]))
    found = re.fullmatch(
        r"RMSNorm minus LayerNorm: if new seeds have the same mean and standard deviation, (\d+) of them show equality "
        r"with a probability of 80%\.",
        made.text[1],
    )
    gains = [bleu - 20 for bleu in rmsnorm]
    assert equality_power(gains, int(found[1]), 0.5) >= 0.8 > equality_power(gains, int(found[1]) - 1, 0.5)


@pytest.mark.parametrize("rmsnorm", [[19.5, 20.5, 21.5], [19.4, 20.4, 21.4]])
def test_the_text_says_when_too_many_seeds_would_be_needed(rmsnorm):
    made = section(trained(rmsnorm=rmsnorm, layernorm=[20.0, 20.0, 20.0]))
    assert made.text[1].endswith("even 100 of them show equality with a probability below 80%.")


def test_other_test_sets_have_their_intervals():
    results = trained(rmsnorm=[20.0, 20.0], layernorm=[19.0, 19.0])
    results[0].log["tests"]["web"]["bleu"] += 2
    made = section(results)
    assert made.columns[-1] == "web: mean [95% interval]"
    assert made.rows[0][-1] == "+2.0 [-10.7, +14.7]"  # 12.706 sqrt(2) / sqrt(2) either way


def test_a_row_that_does_not_learn_is_named():
    made = section(trained(rmsnorm=[19.0, 19.5], none=[1.0, 1.25]))
    assert made.claims[0].verdict == "borne out, but Baseline does not learn to translate"


def test_differences_beyond_the_picture_are_text():
    figure = Figure()
    section(trained(rmsnorm=[30.0, 31.0], none=[1.0, 1.0])).plot(figure)
    (text,) = figure.axes[0].texts
    assert text.get_text() == "+29.5 [+23.1, +35.9] ►"  # 12.706 sqrt(0.5) / sqrt(2) either way


def test_recipes_that_differ_are_named():
    results = trained(rmsnorm=[19.0, 20.0], none=[15.0, 16.0])
    for result in results[2:]:
        result.log["options"]["learning_rate"] = 0.5
    made = section(results)
    assert made.text[-1] == (
        "Comparisons with Baseline are of two recipes, not only of two norms: it has `learning_rate` 0.5 instead of "
        "the default."
    )
    assert made.claims[0].verdict.endswith("; the recipes differ too")


def test_the_plot_has_every_seed_the_mean_and_the_published_differences():
    figure = Figure()
    section(trained(rmsnorm=[19.0, 20.0], layernorm=[18.0, 18.0])).plot(figure)
    (axes,) = figure.axes
    drawn = [line for line in axes.lines if len(line.get_xdata())]
    assert [1.0, 2.0] in [list(line.get_xdata()) for line in drawn]
    (published,) = (line for line in drawn if line.get_markerfacecolor() == "white")
    assert list(published.get_xdata()) == pytest.approx([22.4 - 22.6, 23.7 - 23.6])
    assert axes.containers[0].lines[0].get_xdata()[0] == 1.5
    band = axes.patches[0]
    assert (band.get_x(), band.get_x() + band.get_width()) == (-0.5, 0.5)


def test_without_pairs_there_is_no_section(results):
    assert section([make_result(Row("mine", "Mine", build=len))]) is None
    assert section([]) is None
