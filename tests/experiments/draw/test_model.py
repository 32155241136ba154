import keras
import numpy as np

from experiments.draw.model import CellNormLSTMCell, bound, build_model, normal_divergence
from experiments.runs.kinds import norm_conditions

RMSNORM = next(each for each in norm_conditions(1e-5) if each.name == "rmsnorm")


def small(seed=1):
    return build_model(RMSNORM, 1e-3, seed, 9, units=5, latent=2, steps=3)


def images(count=4):
    return (np.random.default_rng(0).random((count, 9)) < 0.5).astype(np.float32)


def test_the_noise_depends_on_the_seed_alone():
    one, same, other = (small(seed).get_layer("noise")(images()) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0


def test_only_the_cell_state_is_normalized_and_only_for_the_output():
    generator = np.random.default_rng(0)
    norm = keras.layers.LayerNormalization(epsilon=1e-5)
    cell = CellNormLSTMCell(4, norm)
    cell.build((None, 3))
    plain = keras.layers.LSTMCell(4)
    plain.build((None, 3))
    plain.set_weights(
        [weight.numpy() for weight in (cell.kernel, cell.recurrent_kernel, cell.bias)]
    )
    x, h, c = (generator.normal(size=(2, size)).astype(np.float32) for size in (3, 4, 4))
    expected_h, [_, expected_c] = plain(x, [h, c])
    found_h, [same_h, found_c] = cell(x, [h, c])
    np.testing.assert_allclose(found_c, expected_c, rtol=1e-5)
    output_gate = np.asarray(expected_h) / np.tanh(expected_c)
    np.testing.assert_allclose(
        found_h, output_gate * np.tanh(norm(expected_c)), rtol=1e-4, atol=1e-6
    )
    assert same_h is found_h


def test_the_divergence_is_the_mean_log_ratio_of_the_densities():
    """The reference integrates over 100,000 samples; its standard error is below 0.01."""
    mean = 0.7
    log_deviation = -0.4
    z = mean + np.exp(log_deviation) * np.random.default_rng(0).normal(size=100_000)
    log_q = -0.5 * ((z - mean) / np.exp(log_deviation)) ** 2 - log_deviation
    expected = np.mean(log_q + 0.5 * z**2)
    found = normal_divergence(
        np.full((1, 3), mean, np.float32), np.full((1, 3), log_deviation, np.float32)
    )
    np.testing.assert_allclose(found, [[3 * expected]], atol=0.05)
    np.testing.assert_allclose(normal_divergence(np.zeros((1, 3)), np.zeros((1, 3))), [[0]])


def test_the_bound_is_the_cross_entropy_plus_the_divergence():
    x = images(2)
    logits = np.random.default_rng(1).normal(size=(2, 9)).astype(np.float32)
    probability = 1 / (1 + np.exp(-logits))
    expected = -np.log(np.where(x == 1, probability, 1 - probability)).sum(1) + [2.5, 0.5]
    outputs = np.concatenate([logits, [[2.5], [0.5]]], 1).astype(np.float32)
    np.testing.assert_allclose(bound(x, outputs), expected, rtol=1e-5)


def test_the_divergence_adds_up_over_the_steps():
    """Without weights to the distribution, every step has the same divergence, that of its bias."""
    model = small()
    step = model.get_layer("drawing").cell
    step.distribution.kernel.assign(0 * step.distribution.kernel)
    step.distribution.bias.assign([0.5, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(np.asarray(model(images()))[:, -1], 3 * 0.5**2 / 2, rtol=1e-5)
