import pkgutil
import sys
from types import SimpleNamespace

import pytest

from experiments.translation.plan import read_rows, seed_runs
from experiments.translation.row import Row, Run
from nmt.errors import UserError
from nmt.normalization import KINDS


def test_all_rows_of_the_paper_exist():
    found = {row.name: row for row in read_rows()}
    assert [found[name].seeds for name in ("baseline", "layernorm", "rmsnorm")] == [5, 5, 5]
    assert {"l2norm", "prmsnorm"} <= found.keys()
    assert {row.kind for row in found.values()} - {""} == {*KINDS, "rmsnorm", "prmsnorm", "l2norm"}
    assert (
        len([row for row in found.values() if row.section == "partial"]) >= 4
    )  # two more are in Table 2
    assert {
        (row.kind, row.centre, row.moved) for row in found.values() if row.section == "centre"
    } == {
        (kind, centre, moved)
        for kind in ("layernorm", "rmsnorm")
        for centre in (0.2,)
        for moved in ("all", "embeddings", "matrices")
    }
    assert {row.step_size_of for row in found.values()} <= {"", *found}


@pytest.fixture
def add(monkeypatch):
    """Adds a file with a row of the given name to rows/. The file comes first in the alphabet."""

    def add(name):
        monkeypatch.setattr(pkgutil, "iter_modules", lambda path: [SimpleNamespace(name="a_file")])
        rows = SimpleNamespace(ROWS=[Row(name, "", build=lambda name: None)])
        monkeypatch.setitem(sys.modules, "experiments.translation.rows.a_file", rows)

    return add


def test_added_rows_follow_those_of_table_2(add):
    add("mine")
    assert [row.name for row in read_rows()] == [
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
        ("rmsnorm", "more than one row is named rmsnorm"),
        ("none", "none is the kind of another row"),
    ],
)
def test_the_name_of_a_row_is_unique_and_no_kind(name, said, add):
    add(name)
    with pytest.raises(UserError, match=said):
        read_rows()


def test_every_row_has_its_first_seed_before_any_second_seed():
    one = Row("one", "", kind="none")
    two = Row("two", "", kind="none", seeds=2)
    assert [run.name for run in seed_runs({one: None, two: None}, 3)] == ["one-1", "two-1", "two-2"]
    assert list(seed_runs({two: 0.5}, 1)) == [Run(two, 1, 0.5)]


def test_seeds_may_begin_later_and_only_some_may_be_wanted():
    late = Row("late", "", kind="none", seeds=3, first_seed=101)
    assert [run.seed for run in seed_runs({late: None}, 2)] == [101, 102]
    assert [run.seed for run in seed_runs({late: None}, 3, only=[102, 7])] == [102]
