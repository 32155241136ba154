import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.centre import section
from tests.experiments.translation.conftest import make_result


def test_a_recentred_row_is_compared_with_its_kind(results):
    made = section(results)
    assert made.rows == [
        ["RMSNorm", "0", "20.0", "15.0", "0"],
        ["RMSNorm, elsewhere", "0.25", "20.0", "15.0", "0"],
    ]
    assert made.text[1] == "RMSNorm, elsewhere: 20.0 on the dev set, 20.0 with the usual initialisation."


def test_a_recentred_row_is_shown_alone_if_its_kind_is_missing(results):
    made = section([each for each in results if each.row.name == "moved"])
    assert [row[0] for row in made.rows] == ["RMSNorm, elsewhere"]
    assert len(made.text) == 2
    assert section([each for each in results if each.row.name != "moved"]) is None


def test_an_added_row_of_the_same_kind_is_not_the_papers(results):
    moved = next(each for each in results if each.row.name == "moved")
    added = moved._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    assert section([*results, added]).rows == section(results).rows


@pytest.mark.parametrize(
    ("best", "said", "verdict"),
    [
        (30.0, "Here the order is reversed; the reason is unknown.", "not borne out by 1 seed: the order is reversed"),
        (10.0, "the same.", "the same order, not shown by 1 seed"),
    ],
)
def test_the_order_of_the_norms_is_compared_with_the_papers(results, best, said, verdict):
    layernorm = make_result(Row("other", "LayerNorm, elsewhere", kind="layernorm", centre=0.25), bleu=[best])
    made = section([*results, layernorm])
    text = made.text[2]
    assert "the best BLEU is 3.8 with LayerNorm and 16.8 with RMSNorm" in text
    assert said in text
    assert made.claims[0].paper == "best BLEU 16.8 against 3.8"
    assert made.claims[0].verdict == verdict


def test_the_recentred_curve_is_dashed(results):
    figure = Figure()
    section(results).plot(figure)
    styles = {line.get_label(): line.get_linestyle() for line in figure.axes[0].lines}
    assert styles == {"RMSNorm": "-", "RMSNorm, elsewhere": "--"}
