import pytest

pytest.importorskip("matplotlib")

from experiments.reporting.styles import KINDS, OTHERS, styles


def test_no_two_kinds_share_a_colour_a_marker_or_a_dash():
    for field in zip(*KINDS.values(), strict=True):
        assert len(set(field)) == len(KINDS)
    assert len({style.color for style in (*KINDS.values(), *OTHERS)}) == len(KINDS) + len(OTHERS)


def test_an_added_row_has_its_own_style():
    found = styles({"rmsnorm": "rmsnorm", "mine": None, "yours": None})
    assert found["rmsnorm"] == KINDS["rmsnorm"]
    assert len(set(found.values())) == 3
