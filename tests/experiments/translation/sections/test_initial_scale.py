import pytest

pytest.importorskip("matplotlib")

from experiments.translation.sections.initial_scale import section
from tests.experiments.translation.conftest import INITIAL_SCALE


@pytest.fixture
def made():
    return section({**INITIAL_SCALE, "commit": "0123456789ab"})


def test_every_norm_has_its_mean_square_and_changes(made):
    heads = ["mean square / epsilon", "change, RMSNorm", "change, LayerNorm"]
    assert made.columns == ["norm", *(f"4/8: {head}" for head in heads)]
    assert made.rows == [
        ["`encoder.x_norm`", "0.1", "75%", "75%"],
        ["`encoder.state_norm`", "1e+03", "0%", "0%"],
    ]


def test_the_claim_has_the_largest_change(made):
    (claim,) = made.claims
    assert claim.ours == "doubled weights change its output by up to 75% at 4/8, epsilon 1e-05"
    assert claim.verdict == "only where the mean square is far above epsilon"


def test_without_measurements_there_is_no_section():
    assert section(None) is None
