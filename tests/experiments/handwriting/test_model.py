import numpy as np
import pytest

from experiments.handwriting.model import (
    COMPONENTS,
    LEAST_DEVIATION,
    build_model,
    negative_log_likelihood,
)
from experiments.runs.kinds import CELL_CONDITIONS


def outputs(generator, scale=1.0):
    return (scale * generator.normal(size=(1, 1, 1 + 6 * COMPONENTS))).astype(np.float32)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_density_of_a_point_integrates_to_one(seed):
    found = outputs(np.random.default_rng(seed), 0.5)
    axis = np.linspace(-12, 12, 241, dtype=np.float32)
    x, y = np.meshgrid(axis, axis)
    total = 0.0
    for up in (0.0, 1.0):
        points = np.stack([x.ravel(), y.ravel(), np.full(x.size, up, np.float32)], -1)[None]
        total += (
            np.exp(-negative_log_likelihood(points, np.repeat(found, x.size, 1))).sum() * 0.1**2
        )
    assert total == pytest.approx(1, abs=1e-3)


def test_one_component_is_the_normal_distribution():
    stats = pytest.importorskip("scipy.stats")
    logits, x_mean, y_mean, x_log, y_log, correlation = np.zeros((6, COMPONENTS))
    logits[1:] = -1e4
    x_mean[0] = 0.5
    y_mean[0] = -1
    x_log[0] = 0.3
    y_log[0] = -0.7
    correlation[0] = 0.8
    parts = np.concatenate([[0.4], logits, x_mean, y_mean, x_log, y_log, correlation])[None, None]
    rho = np.tanh(0.8)
    deviations = np.exp([0.3, -0.7])
    covariance = np.outer(deviations, deviations) * [[1, rho], [rho, 1]]
    point = np.array([0.9, -0.6])
    expected = -stats.multivariate_normal([0.5, -1], covariance).logpdf(point) + np.log(
        1 + np.exp(-0.4)
    )
    found = negative_log_likelihood(
        np.array([[[*point, 1.0]]], np.float32), parts.astype(np.float32)
    )
    np.testing.assert_allclose(found, [[expected]], rtol=1e-5)


def test_a_density_has_a_bound():
    """No component may shrink onto a point that comes often."""
    found = outputs(np.random.default_rng(0), 0.0)
    found[..., 1 + 3 * COMPONENTS : 1 + 5 * COMPONENTS] = -50
    loss = float(negative_log_likelihood(np.zeros((1, 1, 3), np.float32), found)[0, 0])
    assert loss == pytest.approx(
        np.log(2 * np.pi) + 2 * np.log(LEAST_DEVIATION) + np.log(2), rel=1e-4
    )


def test_a_correlation_near_one_gives_a_finite_loss():
    found = outputs(np.random.default_rng(0))
    found[..., -COMPONENTS:] = 40
    assert np.isfinite(negative_log_likelihood(np.zeros((1, 1, 3), np.float32), found)).all()


@pytest.mark.parametrize("condition", CELL_CONDITIONS, ids=lambda condition: condition.name)
def test_a_prediction_depends_on_earlier_points_alone(condition):
    points = np.random.default_rng(0).normal(size=(1, 6, 3)).astype(np.float32)
    changed = points.copy()
    changed[:, 4:] += 1
    model = build_model(condition, 1e-3, 1, length=6, units=4)
    before, after = (np.asarray(model(each)) for each in (points, changed))
    np.testing.assert_allclose(before[:, :4], after[:, :4], rtol=1e-5, atol=1e-6)
    assert np.abs(before[:, 4:] - after[:, 4:]).min(-1).max() > 0
