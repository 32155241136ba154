import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.centre import section
from tests.experiments.translation.conftest import make_result

LAYERNORM, RMSNORM = (
    Row(kind, label, kind=kind) for kind, label in (("layernorm", "LayerNorm"), ("rmsnorm", "RMSNorm"))
)


def moved(kind, part="all", centre=0.2):
    """Returns a row with the name that it has in `rows/centres.py`."""
    name = f"{kind}-centre" + ("" if centre == 0.2 else f"-{centre:g}") + ("" if part == "all" else f"-{part}")
    return Row(name, f"{kind}, {part} {centre}", kind=kind, centre=centre, moved=part)


def seeds(row, *bleu):
    """Returns a result for each seed, with this BLEU at the best validation."""
    return [make_result(row, seed, bleu=(best, best - 1)) for seed, best in enumerate(bleu, 1)]


def test_rows_are_shown_with_those_of_their_kinds(results):
    made = section(results)
    assert made.rows == [
        ["RMSNorm", "0", "none", "1", "20.0", "15.0", "0", "", ""],
        ["RMSNorm, elsewhere", "0.25", "all", "1", "20.0", "15.0", "0", "+0.0 (1 seed)", ""],
    ]


def test_a_row_is_shown_alone_if_its_kind_is_missing(results):
    made = section([each for each in results if each.row.name == "moved"])
    assert [row[0] for row in made.rows] == ["RMSNorm, elsewhere"]
    assert section([each for each in results if each.row.name != "moved"]) is None


def test_an_added_row_of_the_same_kind_is_not_the_papers(results):
    added = next(each for each in results if each.row.name == "moved")
    added = added._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    assert section([*results, added]).rows == section(results).rows


def test_the_text_has_the_papers_best_values():
    made = section([*seeds(moved("rmsnorm"), 20, 21, 21), *seeds(moved("layernorm"), 10, 11, 10)])
    assert "30 validations of its Figure 4" in made.text[-1]
    assert "the best BLEU is 3.8 with LayerNorm and 16.0 with RMSNorm" in made.text[-1]


def test_the_differences_are_told_for_every_part_and_centre():
    results = [
        result
        for part, centre, gap in (("embeddings", 0.2, 1), ("matrices", 0.02, -2))
        for kind, bleu in (("layernorm", 20), ("rmsnorm", 20 + gap))
        for result in seeds(moved(kind, part, centre), bleu, bleu + 1)
    ]
    told = {tuple(row[:3]): row[-1] for row in section(results).rows}
    assert told["rmsnorm, embeddings 0.2", "0.2", "embeddings"] == "+1.0 [+1.0, +1.0]"
    assert told["rmsnorm, matrices 0.02", "0.02", "other matrices"] == "-2.0 [-2.0, -2.0]"
    assert told["layernorm, embeddings 0.2", "0.2", "embeddings"] == ""


def test_the_text_says_how_little_the_losses_of_layernorm_change():
    results = [*seeds(LAYERNORM, 20, 21), *seeds(moved("layernorm", "matrices"), 19, 20)]
    for result, loss in zip(results, (5.0, 6.0, 5.002, 5.996), strict=True):
        result.log["validations"][0]["train_loss"] = loss
    assert any("of the same seed differs by at most 0.004." in text for text in section(results).text)


def test_every_seed_is_drawn_by_centre():
    results = [*seeds(RMSNORM, 20, 21), *seeds(moved("rmsnorm"), 10, 12), *seeds(moved("rmsnorm", centre=0.02), 15)]
    figure = Figure()
    section(results).plot(figure)
    small, large, published = figure.axes
    assert small.get_ylim() == large.get_ylim()
    drawn = [list(line.get_ydata()) for line in small.lines if len(line.get_ydata())]
    assert drawn == [[20.5, 15], [20, 21], [15]]
    assert [list(line.get_ydata()) for line in large.lines] == [[20.5, 11], [20, 21], [10, 12]]
    assert len(published.lines) == 2
