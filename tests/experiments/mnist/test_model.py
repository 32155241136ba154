import numpy as np
import pytest

from experiments.mnist.model import CONDITIONS as ALL
from experiments.mnist.model import SUMS, UnbiasedBatchNormalization, build_model

CONDITIONS = {condition.name: condition for condition in ALL}


def test_rows_have_the_kinds_of_both_papers():
    assert CONDITIONS.keys() >= {"none", "layernorm", "rmsnorm", "prmsnorm", "batchnorm"}
    assert (
        len({condition.norm("norm").epsilon for condition in CONDITIONS.values() if condition.norm})
        == 1
    )


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=lambda condition: condition.name)
def test_a_hidden_layer_is_the_norm_of_the_product_and_a_relu(condition):
    model = build_model(condition, 1e-3, 1, hidden=6, pixels=16)
    images = np.random.default_rng(0).random((5, 16)).astype(np.float32)
    hidden = images
    for name in SUMS:
        hidden = hidden @ model.get_layer(name).kernel.numpy()
        if condition.norm:
            hidden = np.asarray(model.get_layer(f"{name}_norm")(hidden))
        hidden = np.maximum(hidden, 0)
    logits = hidden @ model.get_layer("logits").kernel.numpy()
    if condition.name == "batchnorm":
        logits = np.asarray(model.get_layer("logits_norm")(logits))
    np.testing.assert_allclose(model(images), logits, rtol=1e-4, atol=1e-5)


def test_batch_normalization_has_the_unbiased_variance():
    layer = UnbiasedBatchNormalization(epsilon=1e-6, momentum=0.5)
    x = np.random.default_rng(0).normal(2.0, 3.0, (4, 5)).astype(np.float32)
    y = layer(x, training=True)
    variance = x.var(0, ddof=1)
    np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(variance + 1e-6), rtol=1e-4, atol=1e-5)
    moving_mean = x.mean(0) / 2
    moving_variance = (1 + variance) / 2
    np.testing.assert_allclose(
        layer(x), (x - moving_mean) / np.sqrt(moving_variance + 1e-6), rtol=1e-4, atol=1e-5
    )
