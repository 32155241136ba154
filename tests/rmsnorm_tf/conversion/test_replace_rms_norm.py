"""Replacing the RMS norms of other libraries."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, RMSNormalization, replace_rms_norm
from tests.backends import to_array
from tests.folding import (
    assert_same_outputs,
    assert_stays,
    converted,
    dense,
    layers,
    with_drawn_weights,
)
from tests.plain_norm import PlainRMSNorm


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
class NormOfPairs(PlainRMSNorm):
    def build(self, shape):
        super().build((2,))


@keras.saving.register_keras_serializable(package="tests")
class Pairs(layers.Layer):
    """Normalizes pairs of channels with a norm built for its own input, as KerasHub's Qwen3."""

    def build(self, shape):
        self.norm = NormOfPairs(name="norm")
        self.norm.build(shape)

    def call(self, x):
        return keras.ops.reshape(self.norm(keras.ops.reshape(x, (-1, 4, 3, 2))), (-1, 4, 6))


def with_norm(layer):
    return with_drawn_weights(keras.Sequential([keras.Input((4, 6)), dense(), layer]))


def test_keras_rms_norms_are_replaced():
    model = with_norm(layers.RMSNormalization(epsilon=1e-4, name="norm"))
    [entry] = converted(replace_rms_norm, model)
    assert entry.converted
    assert model.get_layer("norm").epsilon == 1e-4


@pytest.mark.parametrize(("shape", "axis"), [((6,), 1), ((4, 6), 2)])
def test_a_keras_rms_norm_over_the_last_axis_is_replaced(shape, axis):
    norm = layers.RMSNormalization(axis=axis, name="norm")
    model = with_drawn_weights(keras.Sequential([keras.Input(shape), norm]))
    [entry] = converted(replace_rms_norm, model)
    assert entry == Conversion("norm", True, "the same norm with epsilon=1e-06")


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="Keras computes other axes wrongly on PyTorch"
)
@pytest.mark.parametrize("axis", [1, (1, -1)])
def test_a_keras_rms_norm_over_another_axis_stays(axis):
    norm = layers.RMSNormalization(axis=axis, name="norm")
    try:
        model = keras.Sequential([keras.Input((3, 4)), norm])
    except TypeError:
        pytest.skip("this version of Keras normalizes one axis only")
    [entry] = replace_rms_norm(model).entries
    assert_stays(entry, "over the last axis")


def test_a_keras_rms_norm_without_epsilon_stays():
    [entry] = replace_rms_norm(with_norm(layers.RMSNormalization(epsilon=0.0, name="norm"))).entries
    assert_stays(entry, "epsilon")


@keras.saving.register_keras_serializable(package="tests")
class NormOfImages(PlainRMSNorm):
    """Normalizes over space where there is space."""

    def call(self, x):
        axes = (1, 2) if len(x.shape) == 4 else -1
        return (
            x
            * keras.ops.rsqrt(keras.ops.mean(x * x, axes, keepdims=True) + self.epsilon)
            * self.gain
        )


@keras.saving.register_keras_serializable(package="tests")
class ClippedNorm(PlainRMSNorm):
    limit = 8

    def call(self, x):
        return keras.ops.clip(super().call(x), -self.limit, self.limit)


@keras.saving.register_keras_serializable(package="tests")
class NormOfClipped(PlainRMSNorm):
    def call(self, x):
        return super().call(keras.ops.clip(x, -200, 200))


@keras.saving.register_keras_serializable(package="tests")
class NormClippedFarAway(ClippedNorm):
    limit = 30_000


@keras.saving.register_keras_serializable(package="tests")
class NormOfModerateEntries(PlainRMSNorm):
    def call(self, x):
        return super().call(keras.ops.where(abs(x) < 1e9, x, 0.0))


def test_a_norm_that_clips_what_large_gains_make_stays():
    model = keras.Sequential([keras.Input((6,)), NormClippedFarAway(name="norm")])
    assert not replace_rms_norm(model).entries[0].converted


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (NormOfImages, (3, 3, 6)),
        (ClippedNorm, (6,)),
        (NormOfClipped, (4, 6)),
        (NormOfModerateEntries, (6,)),
    ],
)
@pytest.mark.parametrize("use_gain", [True, False])
def test_a_norm_that_computes_something_else_stays(make, shape, use_gain):
    if make is ClippedNorm and not use_gain:
        shape = (100,)  # the output of a norm without gain is at most the root of its size
    model = with_drawn_weights(
        keras.Sequential([keras.Input(shape), make(use_gain=use_gain, name="norm")])
    )
    [entry] = replace_rms_norm(model).entries
    assert_stays(entry, make.__name__, "does not compute an RMS norm")


@keras.saving.register_keras_serializable(package="tests")
class NormWithTwoNumbers(PlainRMSNorm):
    """A smaller number than epsilon among its attributes."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.smallest = 1e-9


def test_epsilon_is_the_number_that_counts_for_small_inputs():
    model = with_drawn_weights(
        keras.Sequential([keras.Input((6,)), NormWithTwoNumbers(epsilon=1e-7, name="norm")])
    )
    x = 1e-4 * np.random.default_rng(0).normal(size=(2, 6))
    before = to_array(model(x))
    report = replace_rms_norm(model).entries
    assert report == [Conversion("norm", True, "the same norm with epsilon=1e-07")]
    np.testing.assert_allclose(to_array(model(x)), before, rtol=1e-5)


@keras.saving.register_keras_serializable(package="tests")
class NormWithConstraint(PlainRMSNorm):
    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), regularizer="l2", constraint="non_neg")


def test_the_regularizer_and_the_constraint_of_a_gain_go_along():
    model = with_norm(NormWithConstraint(name="norm"))
    [entry] = replace_rms_norm(model).entries
    assert entry.converted
    scale = model.get_layer("norm").scale
    assert isinstance(scale.regularizer, keras.regularizers.L2)
    assert isinstance(scale.constraint, keras.constraints.NonNeg)


def test_a_normalization_of_inputs_is_not_reported():
    inputs = layers.Normalization(mean=0.5, variance=2.0)
    model = keras.Sequential([keras.Input((6,)), inputs, layers.LayerNormalization(), dense()])
    assert replace_rms_norm(model).entries == []


@pytest.mark.parametrize("epsilon", [np.float32(1e-5), 1, 2.0])
def test_an_epsilon_may_be_any_number(epsilon):
    model = with_norm(layers.RMSNormalization(epsilon=epsilon, name="norm"))
    [entry] = converted(replace_rms_norm, model)
    assert entry.converted
    assert model.get_layer("norm").epsilon == float(epsilon)


def test_a_norm_without_a_gain_is_replaced(tmp_path):
    model = with_norm(PlainRMSNorm(use_gain=False, name="norm"))
    report = converted(replace_rms_norm, model)
    assert report == [Conversion("norm", True, "the same norm with epsilon=1e-05")]
    assert not model.get_layer("norm").weights


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (NormWithMask, "also takes mask"),
        (NormWithDropout, "also takes training"),
        (NormWithoutMask, "computes a mask"),
    ],
)
def test_a_norm_that_does_more_stays(make, reason):
    model = with_norm(make(name="norm"))
    [entry] = replace_rms_norm(model).entries
    assert_stays(entry, make.__name__, reason)
    assert type(model.get_layer("norm")) is make


def test_a_norm_that_is_frozen_by_its_layer_is_replaced():
    model = with_norm(PlainRMSNorm(name="norm"))
    model.trainable = False
    [entry] = replace_rms_norm(model).entries
    assert entry.converted
    assert not model.trainable_weights


@pytest.mark.parametrize("make", [PlainRMSNorm, layers.RMSNormalization])
@pytest.mark.filterwarnings("ignore:Layer 'norm' .* was passed an input with a mask:UserWarning")
def test_a_mask_ends_where_it_ended(make, tmp_path):
    words = layers.Embedding(7, 6, mask_zero=True)
    model = keras.Sequential([keras.Input((5,), dtype="int32"), words, make(name="norm")])
    model.add(layers.GlobalAveragePooling1D())
    with_drawn_weights(model)
    padded = np.array([[1, 2, 3, 0, 0]])
    before = to_array(model(padded))
    [entry] = replace_rms_norm(model).entries
    assert entry.converted
    model.save(tmp_path / "model.keras")
    for same in (model, keras.models.load_model(tmp_path / "model.keras")):
        assert type(same.get_layer("norm")) is RMSNormalization
        np.testing.assert_allclose(to_array(same(padded)), before, rtol=0, atol=1e-5)


def test_the_gain_says_the_size_of_a_norm_that_was_built_for_another_input(tmp_path):
    model = with_norm(Pairs(name="pairs"))
    [entry] = converted(replace_rms_norm, model)
    assert entry.converted
    model.save(tmp_path / "model.keras")
    assert_same_outputs(model, keras.models.load_model(tmp_path / "model.keras"))
