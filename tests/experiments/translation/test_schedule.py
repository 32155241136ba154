import itertools
import pkgutil
import sys
from types import SimpleNamespace

import pytest

from experiments.translation.condition import Condition, Run
from experiments.translation.schedule import read_conditions, seed_runs
from nmt.errors import UserError
from nmt.normalization import KINDS


def test_all_rows_of_the_paper_exist():
    found = {condition.name: condition for condition in read_conditions()}
    assert [found[name].seeds for name in ("baseline", "layernorm", "rmsnorm")] == [5, 5, 5]
    assert {"l2norm", "prmsnorm"} <= found.keys()
    assert {condition.kind for condition in found.values()} - {""} == {
        *KINDS,
        "rmsnorm",
        "prmsnorm",
        "l2norm",
    }
    assert (
        len([condition for condition in found.values() if condition.section == "partial"]) >= 4
    )  # two more are in Table 2
    assert {
        (condition.kind, condition.centre, condition.moved)
        for condition in found.values()
        if condition.section == "centre"
    } == set(itertools.product(("layernorm", "rmsnorm"), (0.2,), ("all", "embeddings", "matrices")))
    assert {condition.step_size_of for condition in found.values()} <= {"", *found}


@pytest.fixture
def add(monkeypatch):
    """Adds a file with a condition of the given name to conditions/.

    The file comes first in the alphabet.
    """

    def add(name):
        monkeypatch.setattr(pkgutil, "iter_modules", lambda path: [SimpleNamespace(name="a_file")])
        conditions = SimpleNamespace(CONDITIONS=[Condition(name, "", build=lambda name: None)])
        monkeypatch.setitem(sys.modules, "experiments.translation.conditions.a_file", conditions)

    return add


def test_added_rows_follow_those_of_table_2(add):
    add("mine")
    assert [condition.name for condition in read_conditions()] == [
        "baseline",
        "layernorm",
        "l2norm",
        "rmsnorm",
        "prmsnorm",
        "mine",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rmsnorm", "rmsnorm: another condition"),
        ("none", "none: another condition"),
    ],
)
def test_the_name_of_a_row_is_unique_and_no_kind(name, said, add):
    add(name)
    with pytest.raises(UserError, match=said):
        read_conditions()


def test_every_row_has_its_first_seed_before_any_second_seed():
    one = Condition("one", "", kind="none")
    two = Condition("two", "", kind="none", seeds=2)
    assert [run.name for run in seed_runs({one: None, two: None}, 3)] == ["one-1", "two-1", "two-2"]
    assert list(seed_runs({two: 0.5}, 1)) == [Run(two, 1, 0.5)]


def test_seeds_may_begin_later_and_only_some_may_be_wanted():
    late = Condition("late", "", kind="none", seeds=3, first_seed=101)
    assert [run.seed for run in seed_runs({late: None}, 2)] == [101, 102]
    assert [run.seed for run in seed_runs({late: None}, 3, only=[102, 7])] == [102]
