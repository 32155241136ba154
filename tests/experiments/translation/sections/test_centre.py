import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.condition import Condition
from experiments.translation.sections.centre import section
from tests.experiments.translation.conftest import make_result

RMSNORM = Condition("rmsnorm", "RMSNorm", kind="rmsnorm")


def moved(kind, part="all"):
    """Returns a condition with the name that it has in `conditions/centres.py`."""
    name = f"{kind}-centre" + ("" if part == "all" else f"-{part}")
    return Condition(name, f"{kind}, {part}", kind=kind, centre=0.2, moved=part)


def seeds(condition, *bleu):
    """Returns a result for each seed, with this BLEU at the best validation."""
    return [
        make_result(condition, seed, bleu=(best, best - 1)) for seed, best in enumerate(bleu, 1)
    ]


def test_rows_are_shown_with_those_of_their_kinds(results):
    made = section(results)
    assert made.rows == [
        ["RMSNorm", "none", "1", "20.0", "", ""],
        ["RMSNorm, elsewhere", "all", "1", "20.0", "+0.0 (1 seed)", ""],
    ]


def test_a_row_is_shown_alone_if_its_kind_is_missing(results):
    made = section([each for each in results if each.condition.name == "moved"])
    assert [cells[0] for cells in made.rows] == ["RMSNorm, elsewhere"]
    assert section([each for each in results if each.condition.name != "moved"]) is None


def test_an_added_row_of_the_same_kind_is_not_the_papers(results):
    added = next(each for each in results if each.condition.name == "moved")
    added = added._replace(condition=Condition("added", "RMSNorm, added", kind="rmsnorm"))
    assert section([*results, added]).rows == section(results).rows


def test_the_text_has_the_papers_best_values():
    made = section([*seeds(moved("rmsnorm"), 20, 21, 21), *seeds(moved("layernorm"), 10, 11, 10)])
    assert "30 validations of its Figure 4" in made.text[-1]
    assert "the best BLEU is 3.8 with LayerNorm and 16.0 with RMSNorm" in made.text[-1]


def test_the_differences_are_told_for_every_part():
    results = [
        result
        for part, gap in (("embeddings", 1), ("matrices", -2))
        for kind, bleu in (("layernorm", 20), ("rmsnorm", 20 + gap))
        for result in seeds(moved(kind, part), bleu, bleu + 1)
    ]
    told = {cells[0]: cells[-1] for cells in section(results).rows}
    assert told["rmsnorm, embeddings"] == "+1.0 [+1.0, +1.0]"
    assert told["rmsnorm, matrices"] == "-2.0 [-2.0, -2.0]"
    assert told["layernorm, embeddings"] == ""


def test_every_seed_is_drawn_by_what_is_moved():
    figure = Figure()
    section([*seeds(RMSNORM, 20, 21), *seeds(moved("rmsnorm"), 10, 12)]).plot(figure)
    (axes,) = figure.axes
    drawn = [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata())]
    assert drawn == [[20.5, 11], [20, 21], [10, 12]]
