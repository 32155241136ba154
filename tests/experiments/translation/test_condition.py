import pytest

from experiments.translation.condition import Condition
from experiments.translation.schedule import read_conditions


@pytest.mark.parametrize("wrong", [{}, {"kind": "none", "build": len}])
def test_a_row_has_a_kind_or_builds_one(wrong):
    with pytest.raises(ValueError, match=r"'both' has .*; give one of the two"):
        Condition("both", "", **wrong)


def test_a_row_that_builds_a_norm_names_its_kind():
    assert Condition("mine", "", build=len).normalization == "mine"
    assert Condition("mine", "", kind="none").normalization == "none"


def test_the_section_of_a_row():
    assert Condition("mine", "", build=len).section == "main"
    assert Condition("mine", "", build=len, partial=0.25).section == "partial"
    assert Condition("mine", "", kind="none", centre=0.25, step_size_of="other").section == "centre"
    assert Condition("mine", "", kind="none", step_size_of="other").section == "main"


def test_a_row_of_the_sweep_builds_its_p():
    condition = next(condition for condition in read_conditions() if condition.partial == 0.125)
    layer = condition.build("norm")
    assert (layer.partial, layer.epsilon, layer.name) == (0.125, 1e-5, "norm")
