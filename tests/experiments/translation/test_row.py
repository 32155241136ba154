import pytest

from experiments.translation.plan import read_rows
from experiments.translation.row import Row


@pytest.mark.parametrize("wrong", [{}, {"kind": "none", "build": len}])
def test_a_row_has_a_kind_or_builds_one(wrong):
    with pytest.raises(ValueError, match=r"'both' has .*; give one of the two"):
        Row("both", "", **wrong)


def test_a_row_that_builds_a_norm_names_its_kind():
    assert Row("mine", "", build=len).normalization == "mine"
    assert Row("mine", "", kind="none").normalization == "none"


def test_the_section_of_a_row():
    assert Row("mine", "", build=len).section == "main"
    assert Row("mine", "", build=len, partial=0.25).section == "partial"
    assert Row("mine", "", kind="none", centre=0.25, step_size_of="other").section == "centre"
    assert Row("mine", "", kind="none", step_size_of="other").section == "main"


def test_a_row_of_the_sweep_builds_its_p():
    row = next(row for row in read_rows() if row.partial == 0.125)
    layer = row.build("norm")
    assert (layer.partial, layer.epsilon, layer.name) == (0.125, 1e-5, "norm")
