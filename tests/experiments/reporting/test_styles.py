import pytest

from experiments.reporting.styles import KINDS, OTHERS, styles
from experiments.translation.corpus import read_corpus
from experiments.translation.schedule import read_conditions
from experiments.translation.sections.curves import kind_of


def test_no_two_kinds_share_a_colour_a_marker_or_a_dash():
    for field in zip(*KINDS.values(), strict=True):
        assert len(set(field)) == len(KINDS)
    assert len({*OTHERS, *(style.color for style in KINDS.values())}) == len(KINDS) + len(OTHERS)


def test_an_added_row_has_the_colour_of_its_kind_alone():
    found = styles(
        {
            "rmsnorm": ("rmsnorm", True),
            "mine": ("", False),
            "yours": ("", False),
            "own": ("rmsnorm", False),
        }
    )
    assert found["rmsnorm"] == KINDS["rmsnorm"]
    assert found["own"].color == KINDS["rmsnorm"].color
    assert len(set(found.values())) == 4
    assert not {found["mine"].color, found["yours"].color} & {
        style.color for style in KINDS.values()
    }


@pytest.mark.parametrize("corpus", ["multi30k", "multi30k_transformer"])
def test_rows_that_a_picture_shows_together_have_their_own_markers(corpus):
    conditions = [
        condition
        for condition in read_corpus(corpus).select(read_conditions())
        if condition.section == "main"
    ]
    found = styles({condition: kind_of(condition) for condition in conditions})
    assert len({style.marker for style in found.values()}) == len(conditions)
    assert len({(style.color, style.dashes) for style in found.values()}) == len(conditions)
