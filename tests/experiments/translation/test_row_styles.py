from experiments.reporting.styles import KINDS
from experiments.translation.plan import read_rows
from experiments.translation.row import Row
from experiments.translation.row_styles import styles_of


def test_only_rows_of_the_paper_have_the_styles_of_kinds():
    paper = [row for row in read_rows() if row.section == "table2"]
    added = [Row("one", "", kind="rmsnorm"), Row("two", "", build=len)]
    found = styles_of([added[0], *paper, added[1]])
    assert {row.kind: found[row] for row in paper} == {
        kind: KINDS[kind] for kind in ("none", "layernorm", "rmsnorm", "prmsnorm", "l2norm")
    }
    assert len(set(found.values())) == len(found)
