import pytest

from experiments.reporting.styles import KINDS
from experiments.translation.corpus import read_corpus
from experiments.translation.plan import read_rows
from experiments.translation.row import Row
from experiments.translation.sections.curves import styles_of

PAPER = [Row(name, "", kind=kind) for name, kind in (("baseline", "none"), ("layernorm", "layernorm"))]


def test_rows_of_the_paper_have_the_styles_of_their_kinds():
    assert list(styles_of(PAPER).values()) == [KINDS["none"], KINDS["layernorm"]]


def test_an_added_row_has_the_colour_of_its_kind_alone():
    added = [Row("one", "", kind="layernorm"), Row("two", "", build=len)]
    found = styles_of([added[0], *PAPER, added[1]])
    assert found[added[0]].color == KINDS["layernorm"].color
    assert found[added[1]].color not in {style.color for style in KINDS.values()}


@pytest.mark.parametrize("corpus", ["multi30k", "multi30k_transformer"])
def test_rows_that_a_picture_shows_together_have_their_own_markers(corpus):
    rows = [row for row in read_corpus(corpus).adapt(read_rows()) if row.section == "main"]
    found = styles_of(rows)
    assert len({style.marker for style in found.values()}) == len(rows)
    assert len({(style.color, style.dashes) for style in found.values()}) == len(rows)
