from types import SimpleNamespace

import pytest

from experiments import plan, rows
from experiments.plan import Run, all_runs, read_rows
from experiments.row import Row
from nmt.normalization import KINDS


def test_rows_of_the_paper_are_there():
    found = {row.name: row for row in read_rows()}
    assert [found[name].seeds for name in ("baseline", "layernorm", "rmsnorm")] == [3, 3, 3]
    assert {"l2norm", "prmsnorm"} <= found.keys()
    assert len([row for row in found.values() if row.section == "partial"]) >= 4  # two more are in Table 2
    assert {(row.kind, row.centre) for row in found.values() if row.section == "centre"} == {
        ("layernorm", 0.2),
        ("rmsnorm", 0.2),
    }


def test_a_row_has_a_kind_or_builds_one():
    assert {row.kind for row in read_rows()} - {""} <= {*KINDS, "rmsnorm", "prmsnorm", "l2norm"}
    for wrong in ({}, {"kind": "none", "build": len}):
        with pytest.raises(ValueError, match=r"'both' has .*; give one of the two"):
            Row("both", "", **wrong)


def test_what_a_row_builds_is_what_it_says():
    row = next(row for row in read_rows() if row.partial == 0.125)
    layer = row.build("norm")
    assert (layer.partial, layer.epsilon, layer.name) == (0.125, 1e-5, "norm")


def test_names_are_not_given_twice(monkeypatch):
    row = Row("twice", "", kind="none")
    monkeypatch.setattr(plan.importlib, "import_module", lambda name: SimpleNamespace(ROWS=[row]))
    assert len(list(plan.pkgutil.iter_modules(rows.__path__))) > 1
    with pytest.raises(ValueError, match="more than one row is named twice"):
        read_rows()


def test_every_row_is_run_before_the_second_seed_of_any():
    one, two = Row("one", "", kind="none"), Row("two", "", kind="none", seeds=2)
    assert [run.name for run in all_runs([one, two], 3)] == ["one-1", "two-1", "two-2"]
    assert list(all_runs([two], 1)) == [Run(two, 1)]
