import pytest

from experiments.invariance.task import INVARIANCES, section

BOUND = 1e-14


@pytest.fixture
def measured():
    """Measurements that agree with the paper."""
    changes = {}
    for norm, row in INVARIANCES.items():
        changes[norm] = {name: 1e-15 if invariant else 0.5 for name, invariant in row.items()}
    sizes = {"cases": 2, "inputs": 3, "units": 4, "draws": 5, "epsilon": 1e-16}
    return {**sizes, "bound": BOUND, "changes": changes}


def test_every_cell_has_the_change_and_the_papers_answer(measured):
    made = section(measured)
    assert made.columns[1:] == list(INVARIANCES["RMSNorm"])
    assert [row[0] for row in made.rows] == list(INVARIANCES)
    assert made.rows[3][1:3] == ["yes; paper yes", "no, 0.5; paper no"]
    assert made.claims[0].ours.startswith("30 answers agree,")
    assert made.claims[0].verdict == "borne out"


def test_a_cell_that_disagrees_with_the_paper_is_marked(measured):
    measured["changes"]["RMSNorm"]["weight matrix re-centring"] = BOUND / 2
    made = section(measured)
    assert made.rows[3][2] == "yes; paper no (differs)"
    assert made.claims[0].ours.startswith("29 answers agree,")
    assert made.claims[0].verdict == "not borne out"
