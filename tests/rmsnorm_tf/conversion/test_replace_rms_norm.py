"""Replacing the RMS norms of other libraries."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, RMSNormalization, replace_rms_norm
from tests.folding import assert_same_outputs, dense, layers, with_drawn_weights


@keras.saving.register_keras_serializable(package="tests")
class PlainRMSNorm(layers.Layer):
    """An RMS norm as other libraries write it."""

    frozen = False

    def __init__(self, epsilon=1e-5, use_gain=True, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.use_gain = use_gain

    def build(self, shape):
        trainable = not self.frozen
        self.gain = self.add_weight(shape=(shape[-1],), trainable=trainable) if self.use_gain else 1.0

    def call(self, x):
        return x * keras.ops.rsqrt(keras.ops.mean(x * x, -1, keepdims=True) + self.epsilon) * self.gain

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon, "use_gain": self.use_gain}


@keras.saving.register_keras_serializable(package="tests")
class NormWithMask(PlainRMSNorm):
    def call(self, x, mask=None):
        return super().call(x)


@keras.saving.register_keras_serializable(package="tests")
class NormWithDropout(PlainRMSNorm):
    def call(self, x, training=None):
        return super().call(keras.random.dropout(x, 0.5) if training else x)


@keras.saving.register_keras_serializable(package="tests")
class NormWithoutMask(PlainRMSNorm):
    def compute_mask(self, inputs, previous_mask):
        return None


@keras.saving.register_keras_serializable(package="tests")
class FrozenNorm(PlainRMSNorm):
    frozen = True


def with_norm(layer):
    return with_drawn_weights(keras.Sequential([keras.Input((4, 6)), dense(), layer]))


def test_keras_rms_norms_are_replaced():
    model = with_norm(layers.RMSNormalization(epsilon=1e-4, name="norm"))
    replaced, [entry] = replace_rms_norm(model)
    assert entry.converted
    assert replaced.get_layer("norm").epsilon == 1e-4
    assert_same_outputs(model, replaced)


def test_a_keras_rms_norm_of_several_axes_is_reported():
    norm = layers.RMSNormalization(axis=(1, 2), name="norm")
    try:
        model = keras.Sequential([keras.Input((4, 6)), norm])
    except TypeError:
        pytest.skip("this version of Keras normalizes one axis only")
    assert replace_rms_norm(model)[1] == [Conversion("norm", False, "norm normalizes several axes, or is not built")]


@pytest.mark.parametrize("epsilon", [np.float32(1e-5), 1, 2.0])
def test_an_epsilon_may_be_any_number(epsilon):
    model = with_norm(layers.RMSNormalization(epsilon=epsilon, name="norm"))
    replaced, [entry] = replace_rms_norm(model)
    assert entry.converted
    assert replaced.get_layer("norm").epsilon == float(epsilon)
    assert_same_outputs(model, replaced)


def test_a_norm_without_a_gain_is_replaced(tmp_path):
    model = with_norm(PlainRMSNorm(use_gain=False, name="norm"))
    replaced, report = replace_rms_norm(model)
    assert report == [Conversion("norm", True, "the same norm with epsilon=1e-05")]
    assert not replaced.get_layer("norm").weights
    assert_same_outputs(model, replaced)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (NormWithMask, "the call of norm (NormWithMask) also takes mask, which may change the outputs"),
        (NormWithDropout, "the call of norm (NormWithDropout) also takes training, which may change the outputs"),
        (NormWithoutMask, "norm (NormWithoutMask) computes a mask"),
        (FrozenNorm, "norm (FrozenNorm) has a gain that is never trained"),
    ],
)
def test_a_norm_that_does_more_stays(make, reason):
    model = with_norm(make(name="norm"))
    replaced, [entry] = replace_rms_norm(model)
    assert not entry.converted
    assert entry.reason.startswith(reason)
    assert type(replaced.get_layer("norm")) is make


def test_a_norm_that_is_frozen_by_its_layer_is_replaced():
    model = with_norm(PlainRMSNorm(name="norm"))
    model.trainable = False
    replaced, [entry] = replace_rms_norm(model)
    assert entry.converted
    assert not replaced.trainable_weights


@pytest.mark.parametrize("make", [PlainRMSNorm, layers.RMSNormalization])
@pytest.mark.filterwarnings("ignore:Layer 'norm' .* was passed an input with a mask:UserWarning")
def test_a_mask_ends_where_it_ended(make, tmp_path):
    words = layers.Embedding(7, 6, mask_zero=True)
    model = keras.Sequential([keras.Input((5,), dtype="int32"), words, make(name="norm")])
    model.add(layers.GlobalAveragePooling1D())
    with_drawn_weights(model)
    replaced, [entry] = replace_rms_norm(model)
    assert entry.converted
    replaced.save(tmp_path / "model.keras")
    padded = np.array([[1, 2, 3, 0, 0]])
    for same in (replaced, keras.models.load_model(tmp_path / "model.keras")):
        assert type(same.get_layer("norm")) is RMSNormalization
        np.testing.assert_allclose(same(padded), model(padded), rtol=0, atol=1e-5)
