import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.invariance.section import INVARIANCES, section

BOUND = 1e-14


@pytest.fixture
def measured():
    """Measurements that agree with the paper."""
    changes = {
        norm: {name: 1e-15 if invariant else 0.5 for name, invariant in row.items()}
        for norm, row in INVARIANCES.items()
    }
    sizes = {"cases": 2, "inputs": 3, "units": 4, "draws": 5, "epsilon": 1e-16}
    return {**sizes, "bound": BOUND, "changes": changes}


def test_every_cell_has_the_change_and_the_papers_answer(measured):
    made = section(measured)
    assert made.columns[1:] == list(INVARIANCES["RMSNorm"])
    assert [row[0] for row in made.rows] == list(INVARIANCES)
    assert made.rows[3][1:3] == ["yes; paper yes", "no, 0.5; paper no"]
    assert made.text[-1] == "All 30 cells agree with the paper's Table 1."


def test_a_cell_that_disagrees_with_the_paper_is_marked_and_named(measured):
    measured["changes"]["RMSNorm"]["weight matrix re-centring"] = BOUND / 2
    made = section(measured)
    assert made.rows[3][2] == "yes; paper no (differs)"
    assert made.text[-1] == "These cells disagree with the paper's Table 1: RMSNorm, weight matrix re-centring."
    assert framed(made) == 1
    assert made.claims[0][2:] == ("29 answers agree, with a negligible epsilon and no bias", "not borne out")


def test_the_plot_has_a_text_in_each_cell(measured):
    made = section(measured)
    figure = Figure()
    made.plot(figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert len(texts) == 30
    assert texts[0] == "yes\npaper: yes"
    assert framed(made) == 0


def framed(made):
    figure = Figure()
    made.plot(figure)
    return len(figure.axes[0].patches)
