import numpy as np
import pytest

from experiments.invariance.task import EPSILON, TRANSFORMATIONS, measure_invariance


@pytest.fixture(scope="module")
def measured():
    return measure_invariance()


# From the equations: dividing by a statistic of the summed inputs makes a norm invariant to a
# factor that they share. Subtracting their mean makes it invariant to a number that is added to all
# of them.
@pytest.mark.parametrize(
    ("norm", "invariant"),
    [
        (
            "BatchNorm",
            {"weight matrix re-scaling", "weight vector re-scaling", "dataset re-scaling"},
        ),
        ("WeightNorm", {"weight matrix re-scaling", "weight vector re-scaling"}),
        ("LayerNorm", {"weight matrix re-scaling", "dataset re-scaling", "single case re-scaling"}),
        ("RMSNorm", {"weight matrix re-scaling", "dataset re-scaling", "single case re-scaling"}),
        ("pRMSNorm", {"weight matrix re-scaling", "dataset re-scaling", "single case re-scaling"}),
    ],
)
def test_invariant_maps_change_only_by_rounding_and_others_by_far_more(measured, norm, invariant):
    centring = {"BatchNorm": {"dataset re-centring"}, "LayerNorm": {"weight matrix re-centring"}}
    for name, change in measured["changes"][norm].items():
        if name in invariant | centring.get(norm, set()):
            assert change <= measured["bound"], name
        else:
            assert change > 0.1, name


def test_the_bound_is_a_rounding_error(measured):
    assert np.finfo(np.float64).eps < measured["bound"] < 1e-12


def test_epsilon_does_not_change_a_mean_square():
    assert 1.0 + EPSILON == 1.0


def test_a_transformation_changes_only_what_its_name_says():
    generator = np.random.default_rng(0)
    x, w, vector = (generator.standard_normal(shape) for shape in [(3, 4), (4, 5), 4])
    sums = x @ w

    def transformed(name):
        return np.matmul(*TRANSFORMATIONS[name](x, w, 3.0, vector))

    np.testing.assert_allclose(transformed("weight matrix re-scaling"), 3 * sums)
    np.testing.assert_allclose(transformed("dataset re-scaling"), 3 * sums)
    np.testing.assert_allclose(transformed("weight vector re-scaling"), sums * [3, 1, 1, 1, 1])
    np.testing.assert_allclose(transformed("single case re-scaling"), sums * [[3], [1], [1]])
    # the same number for all units, another for each case; and the other way round
    np.testing.assert_allclose(
        transformed("weight matrix re-centring"), sums + (x @ vector)[:, np.newaxis]
    )
    np.testing.assert_allclose(transformed("dataset re-centring"), sums + vector @ w)
