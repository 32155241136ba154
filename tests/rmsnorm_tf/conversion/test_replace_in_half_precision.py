"""Replacing RMS norms that compute in half precision, which each library rounds in its own order."""

import re

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
    assert entry.reason == "the same norm with epsilon=1e-05, a gain of 1 + scale"
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
    report = replace_rms_norm(model).entries
    [entry] = report
    assert entry.converted
    assert re.fullmatch(
        r"the same norm with epsilon=1e-05; in float16 \d\d% of the outputs differ, by at most 0.\d% of the largest; "
        "in float16 it overflowed for large inputs, and no longer does",
        entry.reason,
    )
    np.testing.assert_allclose(to_array(model(x)), before, rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(
        to_array(model(1e4 * x)), to_array(model(1e3 * x)), rtol=5e-3, atol=5e-3
    )


@keras.saving.register_keras_serializable(package="tests")
class NormRoundedTwice(PlainRMSNorm):
    """Rounds the normalized input before it multiplies by the gain, as Hugging Face's Llama and T5."""

    def call(self, x):
        wide = keras.ops.cast(x, "float32")
        y = wide * keras.ops.rsqrt(keras.ops.mean(wide * wide, -1, keepdims=True) + self.epsilon)
        return keras.ops.cast(y, x.dtype) * keras.ops.cast(self.gain, x.dtype)


@keras.saving.register_keras_serializable(package="tests")
class NormRoundedOnce(NormRoundedTwice):
    """Computes in float32 to the end.

    Keras rounds other gains to half precision where a layer reads them.
    """

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), autocast=False)

    def call(self, x):
        return keras.ops.cast(super().call(keras.ops.cast(x, "float32")), self.compute_dtype)


def share_rounded_otherwise(half, narrow_gain):
    """Returns how many products of a normalized input and a gain differ if both factors are rounded first."""
    rng = np.random.default_rng(1)

    def rounded(x):
        return to_array(keras.ops.cast(keras.ops.cast(x, half), "float32"))

    x = rng.normal(0.5, 1.0, (200, 512))
    gain = rng.uniform(0.5, 2.0, 512)
    y = x / np.sqrt(np.mean(x**2, -1, keepdims=True))
    once = rounded(y * (rounded(gain) if narrow_gain else gain))
    return np.mean(once != rounded(rounded(y) * rounded(gain)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "mixed_bfloat16", "mixed_float16"])
def test_another_order_of_rounding_is_reported(dtype):
    half = dtype.removeprefix("mixed_")
    expected = (
        0 if half == "float32" else 100 * share_rounded_otherwise(half, narrow_gain=half == dtype)
    )
    for make, share in ((NormRoundedTwice, expected), (NormRoundedOnce, 0)):
        [entry] = replace_rms_norm(
            keras.Sequential([keras.Input((512,)), make(dtype=dtype, name="norm")])
        ).entries
        assert entry.converted
        found = re.search(r"(\d+)% of the outputs differ", entry.reason)
        assert bool(found) == bool(share)
        assert not found or abs(int(found[1]) - share) < 4  # it is measured on eight rows
