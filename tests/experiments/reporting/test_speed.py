import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.reporting.speed import AGAIN, Timed, checks_of, speed_section

LAYERNORM = [1.0, 2.0, 0.5]


def timed(rmsnorm, again=(1.0, 2.0, 0.5)):
    return Timed("XLA", [{"layernorm": LAYERNORM, "rmsnorm": rmsnorm, AGAIN: again}])


@pytest.mark.parametrize(
    ("rmsnorm", "again", "verdict"),
    [
        (
            [0.9, 2.2, 0.5],
            LAYERNORM,
            "not shown, in 1 of 5 processes",
        ),  # 0.9, 1.1 and 1 of LayerNorm's
        ([0.9, 1.8, 0.45], LAYERNORM, "shown, in 1 of 5 processes"),
        ([1.1, 2.2, 0.55], LAYERNORM, "the opposite, in 1 of 5 processes"),
        ([0.9, 1.8, 0.45], [0.95, 1.9, 0.475], "shown, in 1 of 5 processes"),  # the noise is 5%
        ([0.9, 1.8, 0.45], [0.85, 1.7, 0.425], "not shown, in 1 of 5 processes"),
        ([0.9, 1.8, 0.45], [1.15, 2.3, 0.575], "not shown, in 1 of 5 processes"),
        ([1.1, 2.2, 0.55], [0.85, 1.7, 0.425], "not shown, in 1 of 5 processes"),
    ],
)
def test_a_time_is_judged_by_its_interval_and_the_noise(rmsnorm, again, verdict):
    assert timed(rmsnorm, again).verdict("rmsnorm") == verdict


def test_a_claim_has_milliseconds_beside_the_ratio_and_the_papers_ratio():
    published = {"layernorm": 4.0, "rmsnorm": 3.0}
    made = speed_section(
        [timed([0.5, 1.0, 0.25])],
        {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"},
        published,
        "",
        {},
    )
    (claim,) = made.claims
    assert claim.paper == "0.75 of LayerNorm's time"
    assert "500.0 ms against 1000.0 ms" in claim.ours
    figure = Figure()
    made.plot(figure)
    (axes,) = figure.axes
    assert [axes.get_yticklabels()[at].get_text() for at in range(2)] == ["LayerNorm", "RMSNorm"]
    assert (
        speed_section(
            [Timed("XLA", [{"layernorm": LAYERNORM}])], {"layernorm": "LayerNorm"}, {}, "", {}
        )
        is None
    )


@pytest.mark.parametrize(
    ("ratios", "again", "verdict"),
    [
        ([0.9, 0.91, 0.89, 0.9, 0.9], [1.0] * 5, "shown"),
        ([0.9, 0.91, 0.89, 0.9, 0.9], [1.0, 1.0, 1.0, 1.1, 1.0], "not shown"),
        ([0.9, 0.91, 0.89, 0.9, 0.9], [1.0, 1.0, 1.0, 0.92, 1.0], "shown"),
        ([0.7, 1.1, 0.8, 1.2, 0.9], [1.0] * 5, "not shown"),
        ([1.1, 1.11, 1.09, 1.1, 1.1], [1.0] * 5, "the opposite"),
        ([0.9, 0.91], [1.0] * 2, "shown, in 2 of 5 processes"),
    ],
)
def test_the_unit_is_a_process(ratios, again, verdict):
    times = np.array(LAYERNORM)
    processes = [
        {"layernorm": LAYERNORM, "rmsnorm": one * times, AGAIN: two * times}
        for one, two in zip(ratios, again, strict=True)
    ]
    found = Timed("XLA", processes)
    assert found.ratio("rmsnorm").middle == pytest.approx(sum(ratios) / len(ratios))
    assert found.verdict("rmsnorm") == verdict


@pytest.mark.parametrize(
    ("checks", "refused"), [([], False), ([1, 1.09], False), ([1, 1.11], True)]
)
def test_times_of_a_machine_whose_speed_varies_are_refused(checks, refused):
    found = timed([0.9, 1.8, 0.45])._replace(checks=checks)
    assert found.verdict("rmsnorm").startswith("refused" if refused else "shown")


def test_the_checks_of_a_log_are_one_or_several_speeds():
    assert checks_of([{"gflops": 3}, {"gflops": [1, 2]}, {}]) == [3, 1, 2]
