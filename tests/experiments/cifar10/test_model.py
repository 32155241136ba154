import numpy as np
import pytest

from experiments.cifar10.model import CONDITIONS as ALL
from experiments.cifar10.model import SUMS, OverPositions, WeightNormalizedConv2D, build_model

CONDITIONS = {condition.name: condition for condition in ALL}


def images(count=3):
    return np.random.default_rng(0).normal(size=(count, 8, 8, 4)).astype(np.float32)


def test_the_layers_are_those_of_convpool_cnn_c():
    """Springenberg et al.

    (2015), Table 2: three blocks of three convolutions, pooled after the first two.
    """
    model = build_model(CONDITIONS["rmsnorm"], 1e-3, 1, updates=10, widths=(4, 6), pixels=16)
    assert model.output_shape == (None, 10)
    shapes = [model.get_layer(name).output.shape[1:] for name in SUMS]
    assert shapes == [(16, 16, 4)] * 3 + [(8, 8, 6)] * 3 + [(2, 2, 6)] * 3
    assert [model.get_layer(name).kernel_size for name in SUMS] == [(3, 3)] * 7 + [(1, 1)] * 2


@pytest.mark.parametrize(
    ("name", "axes", "centred"),
    [
        ("rmsnorm", (1, 2), False),
        ("layernorm", (1, 2), True),
        ("rmsnorm-channels", (3,), False),
        ("rmsnorm-all", (1, 2, 3), False),
        ("layernorm-all", (1, 2, 3), True),
    ],
)
def test_a_norm_runs_over_its_axes(name, axes, centred):
    x = images()
    expected = x - x.mean(axes, keepdims=True) if centred else x
    expected = expected / np.sqrt((expected**2).mean(axes, keepdims=True) + 1e-6)
    np.testing.assert_allclose(CONDITIONS[name].norm("norm")(x), expected, rtol=1e-4, atol=1e-5)


def test_a_gain_belongs_to_a_channel():
    for condition in CONDITIONS.values():
        if condition.norm:
            assert {weight.shape for weight in built(condition).trainable_weights} == {(4,)}


def built(condition):
    layer = condition.norm("norm")
    layer(images())
    return layer


def test_the_partial_norm_takes_the_first_positions_of_each_channel():
    x = images()
    first = x.reshape(3, 64, 4)[:, :8]  # 12.5% of 64 positions
    expected = x / np.sqrt((first**2).mean(1) + 1e-6)[:, None, None]
    np.testing.assert_allclose(OverPositions(0.125, name="norm")(x), expected, rtol=1e-4, atol=1e-5)


def test_a_normalized_kernel_has_length_1_and_the_direction_of_its_weights():
    layer = WeightNormalizedConv2D(5, 3, "same")
    layer(images())
    np.testing.assert_allclose(
        np.sqrt((layer.kernel.numpy() ** 2).sum((0, 1, 2))), np.ones(5), rtol=1e-5
    )
    before = layer.kernel.numpy()
    layer.direction.assign(3 * layer.direction)
    np.testing.assert_allclose(layer.kernel, before, rtol=1e-4, atol=1e-6)
    layer.gain.assign(np.arange(5))
    np.testing.assert_allclose(layer.kernel, before * np.arange(5), rtol=1e-4, atol=1e-6)
