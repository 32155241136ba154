"""Replacing RMS norms that compute in half precision."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import replace_rms_norm
from tests.backends import to_array
from tests.folding import with_drawn_weights
from tests.plain_norm import PlainRMSNorm


@keras.saving.register_keras_serializable(package="tests")
class NormWithOnePlus(PlainRMSNorm):
    """In float32, as Gemma's."""

    def call(self, x):
        x = keras.ops.cast(x, "float32")
        gain = keras.ops.cast(self.gain, "float32")
        y = (
            x
            * keras.ops.rsqrt(keras.ops.mean(x * x, -1, keepdims=True) + self.epsilon)
            * (1 + gain)
        )
        return keras.ops.cast(y, self.compute_dtype)


def test_a_gain_of_bfloat16_is_taken_over_as_float32(tmp_path):
    """1 + 15.8125 is no bfloat16."""
    model = keras.Sequential([keras.Input((6,)), NormWithOnePlus(dtype="bfloat16", name="norm")])
    model.layers[0].set_weights([np.full(6, 15.8125)])
    [entry] = replace_rms_norm(model).entries
    assert entry.reason.endswith("epsilon=1e-05, a gain of 1 + scale")
    model.save(tmp_path / "model.keras")
    x = keras.ops.ones((1, 6), "bfloat16")
    for same in (model, keras.models.load_model(tmp_path / "model.keras")):
        [weight] = same.trainable_weights
        assert weight.dtype == "float32"
        assert same.layers[0].weights == [weight]
        assert same.layers[0].scale is weight
        np.testing.assert_array_equal(to_array(weight), np.full(6, 15.8125))
        exact = (1 + 15.8125) / np.sqrt(1 + 1e-5)
        np.testing.assert_array_equal(
            to_array(same(x)), to_array(keras.ops.cast([[exact] * 6], "bfloat16"))
        )
    model.compile("sgd", "mse")
    model.fit(np.ones((1, 6)), np.zeros((1, 6)), verbose=0)
    assert np.all(to_array(weight) != to_array(model.layers[0].scale))  # loaded and not trained


def test_a_map_of_policies_stays_as_it_is():
    """Layers share it, and it would keep the policy that one of them was given."""
    policies = keras.dtype_policies.DTypePolicyMap("mixed_bfloat16")
    model = keras.Sequential([keras.Input((6,)), PlainRMSNorm(dtype=policies, name="norm")])
    replace_rms_norm(model)
    assert not len(policies)
    assert model.layers[0].compute_dtype == "bfloat16"


@pytest.mark.parametrize("use_gain", [True, False])
def test_a_norm_that_overflows_in_float16_is_replaced(use_gain):
    model = with_drawn_weights(
        keras.Sequential(
            [keras.Input((6,)), PlainRMSNorm(use_gain=use_gain, dtype="mixed_float16", name="norm")]
        )
    )
    x = np.random.default_rng(0).normal(size=(2, 6)).astype("float32")
    before = to_array(model(x))
    assert not np.any(to_array(model(1e4 * x)))
    [entry] = replace_rms_norm(model).entries
    assert entry.converted
    np.testing.assert_allclose(to_array(model(x)), before, rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(
        to_array(model(1e4 * x)), to_array(model(1e3 * x)), rtol=5e-3, atol=5e-3
    )
