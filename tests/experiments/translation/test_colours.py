from experiments.translation.colours import COLOURS, colours_of
from experiments.translation.plan import read_rows
from experiments.translation.row import Row


def test_a_row_of_the_paper_has_the_colour_of_its_kind_and_no_other_row_has():
    paper = [row for row in read_rows() if row.section == "table2"]
    added = [Row("one", "", kind="rmsnorm"), Row("two", "", build=len)]
    found = colours_of([added[0], *paper, added[1]])
    assert {row.kind: found[row] for row in paper} == COLOURS
    assert len(set(found.values())) == len(found)
