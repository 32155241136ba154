import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.measure.seconds import AGAIN
from experiments.translation.row import Row
from experiments.translation.sections.speed import section
from tests.experiments.translation.conftest import make_result


@pytest.fixture
def timed(results):
    """Results of trainings with the commit of the measurement."""
    for result in results:
        result.log["commit"] = "0123456789ab"
    return results


def cells_of(made):
    return {row[0]: dict(zip(made.columns, row, strict=True)) for row in made.rows}


def test_time_is_per_thousand_updates_and_the_saving_the_median_of_the_rounds(timed, times):
    rows = cells_of(section(timed, times))
    assert rows["RMSNorm"]["s per 1,000 updates"] == "750 (750 to 1250)"
    assert rows["RMSNorm"]["saving"].startswith("25.0% [")  # of 0.75, 0.75 and 0.5 of LayerNorm's
    assert rows["LayerNorm"]["saving"] == rows["no norm"]["saving"] == ""
    assert "Mine" not in rows  # it was not timed


def test_an_added_kind_has_its_time_and_no_published_one(timed, times):
    times["updates"]["float32"]["mine"] = times["updates"]["float32"]["prmsnorm"]
    mine = cells_of(section(timed, times))["Mine"]
    assert mine["s per 1,000 updates"] == "500 (500 to 1000)"
    assert mine["saving"].startswith("50.0% [")  # of 0.5, 0.25 and 1
    assert mine["paper: s per 1,000"] == mine["paper: saving"] == ""


def test_rows_have_the_papers_seconds_and_savings(timed, times):
    added = timed[0]._replace(row=Row("l2norm", "L2-Norm", kind="l2norm"))
    times["updates"]["float32"]["l2norm"] = times["updates"]["float32"]["prmsnorm"]
    rows = cells_of(section([*timed, added], times))
    assert (rows["RMSNorm"]["paper: s per 1,000"], rows["RMSNorm"]["paper: saving"]) == ("501 (sd 11.8)", "24.7%")
    assert (rows["L2-Norm"]["paper: s per 1,000"], rows["L2-Norm"]["paper: saving"]) == ("482 (sd 19.7)", "")


def test_without_measured_seconds_there_is_no_section(timed, times):
    assert section(timed, None) is None
    del times["updates"]["float32"][AGAIN]  # as before LayerNorm was timed twice
    assert section(timed, times) is None
    assert section([each for each in timed if each.row.section != "main"], times) is None


def test_a_kind_is_shown_once_however_many_rows_have_it(times):
    rows = [
        Row(f"{position}-{kind}", f"{kind}, {position}", kind=kind, model_type="transformer")
        for position in ("post", "pre")
        for kind in ("layernorm", "rmsnorm")
    ]
    made = section([make_result(row, commit="1") for row in rows], times)
    assert [cells[0] for cells in made.rows] == ["layernorm, post", "rmsnorm, post"]
    assert [claim.paper for claim in made.claims] == ["6.9% less"]
    made.plot(Figure())


def test_the_text_says_how_time_was_measured_and_compares_the_costs(timed, times):
    measured, compared = section(timed, times).text
    assert "of commit 0123456789ab on one thread. XLA" in measured
    assert "LayerNorm takes 2.00 [1.00, 4.00] times the time of no norm here and 1.67 times in the paper" in compared


def test_another_commit_than_that_of_the_trainings_is_named(timed, times):
    times["commit"] = "other"
    assert "of commit other, which is not that of the trainings, on" in section(timed, times).text[0]


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ([0.9, 2.2, 0.5], "not borne out: within the noise"),  # 0.9, 1.1 and 1 of LayerNorm's
        ([0.9, 1.8, 0.45], "a smaller saving, in one run"),
        ([0.7, 1.5, 0.4], "borne out"),  # 0.7, 0.75 and 0.8
        ([0.7, 1.4, 0.35], "borne out: a larger saving"),
        ([1.1, 2.2, 0.55], "not borne out: it takes more"),
    ],
)
def test_a_saving_is_judged_by_its_interval_and_the_papers(timed, times, rounds, verdict):
    times["updates"]["float32"]["rmsnorm"]["rounds"] = rounds
    claim, _ = section(timed, times).claims
    assert claim.verdict == verdict
    assert claim.paper == "24.7% less"


def test_a_saving_must_be_beyond_that_of_a_second_model_with_layernorm(timed, times):
    times["updates"]["float32"]["rmsnorm"]["rounds"] = [0.9, 1.8, 0.45]  # 10% less in every round
    times["updates"]["float32"][AGAIN]["rounds"] = [0.95, 1.9, 0.475]
    assert section(timed, times).claims[0].verdict == "a smaller saving, in one run"
    assert "it takes 0.95 [0.95, 0.95] times the time of the first" in section(timed, times).text[0]
    times["updates"]["float32"][AGAIN]["rounds"] = [0.85, 1.7, 0.425]
    assert section(timed, times).claims[0].verdict == "not borne out: within the noise"


def test_the_plot_has_our_figures_and_the_published_ones(timed, times):
    figure = Figure()
    section(timed, times).plot(figure)
    (axes,) = figure.axes
    white = [line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert [line.get_xdata()[0] for line in white] == pytest.approx([399 / 665, 501 / 665, 493 / 665])
    ours = [container.lines[0].get_xdata()[0] for container in axes.containers if len(container.lines[0].get_xdata())]
    assert ours == [0.5, 1.0, 0.75, 0.5]
    (segment,) = axes.collections[3].get_segments()
    np.testing.assert_allclose(segment[:, 0], [0.25, 1])  # pRMSNorm: of 0.25, 0.5 and 1
