"""What the layer adds to the function: dtype policies, weights, masks, and its place in Keras."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import RMSNormalization, rms_norm
from tests import reference
from tests.backends import dtype_of, to_array
from tests.cases import TOLERANCE, assert_close

POLICIES = ["float32", "float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]


@pytest.mark.parametrize("policy", POLICIES)
def test_weights_are_wide_and_the_output_has_the_compute_dtype(policy):
    layer = RMSNormalization(dtype=policy, center=True)
    assert dtype_of(layer(ops.ones((2, 4)))) == layer.compute_dtype
    assert layer(keras.Input((4,), dtype="float32")).dtype == layer.compute_dtype
    assert {w.dtype for w in layer.weights} == {"float64" if policy == "float64" else "float32"}


@pytest.mark.parametrize("arrives", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_output_is_rounded_only_once(policy, arrives):
    x = ops.cast(np.random.default_rng(0).normal(size=(5, 64)), arrives)
    layer = RMSNormalization(dtype=policy)
    layer.build(x.shape)
    layer.set_weights([1 + np.random.default_rng(1).uniform(size=64) / 300])
    expected = reference.rms_norm(to_array(x), layer.scale.numpy())
    coarsest = max(
        layer.compute_dtype,
        "float32" if "32" in layer.scale.dtype else "float64",
        key=TOLERANCE.get,
    )
    assert_close(to_array(layer(x)), expected, coarsest)


def test_a_float32_input_beyond_float16_under_mixed_float16():
    x = np.array([[1e5, 2e5, 3e5, 4e5]], np.float32)
    layer = RMSNormalization(dtype="mixed_float16")
    assert_close(layer(x), reference.rms_norm(x), "float16")


def test_the_gain_is_not_rounded_inside_a_model_under_a_mixed_policy():
    inputs = keras.Input((4,), dtype="float32")
    layer = RMSNormalization(dtype="float32", name="norm")
    model = keras.Model(inputs, layer(inputs), dtype="mixed_bfloat16")
    layer.set_weights([np.full(4, 1 + 2**-12)])
    x = np.array([[1.0, -1.0, 1.0, -1.0]], np.float32)
    assert_close(model(x), reference.rms_norm(x, layer.scale.numpy()))


def test_zero_centered_scale_multiplies_by_one_more():
    layer = RMSNormalization(zero_centered_scale=True)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    assert_close(layer(x), reference.rms_norm(x))
    np.testing.assert_array_equal(layer.scale, np.zeros(4))
    layer.scale.assign([1, 2, 3, 4])
    assert_close(layer(x), reference.rms_norm(x, [2, 3, 4, 5]))


def test_initializers_regularizers_and_constraints_reach_the_weights():
    layer = RMSNormalization(
        center=True,
        scale_initializer=keras.initializers.Constant(3.0),
        offset_initializer=keras.initializers.Constant(-2.0),
        scale_regularizer=keras.regularizers.L2(0.5),
        offset_regularizer=keras.regularizers.L1(0.25),
        scale_constraint=keras.constraints.MaxNorm(1.0),
        offset_constraint="non_neg",
    )
    layer.build((None, 4))
    np.testing.assert_array_equal(to_array(layer.scale), np.full(4, 3.0))
    np.testing.assert_array_equal(to_array(layer.offset), np.full(4, -2.0))
    np.testing.assert_allclose(to_array(sum(layer.losses)), 0.5 * 4 * 9 + 0.25 * 4 * 2)
    np.testing.assert_allclose(
        to_array(layer.scale.constraint(layer.scale)), np.full(4, 0.5), rtol=1e-6
    )
    np.testing.assert_array_equal(to_array(layer.offset.constraint(layer.offset)), np.zeros(4))


def test_mask_reaches_the_next_layer():
    tokens = np.array([[1, 2, 3, 0], [4, 0, 0, 0]])
    embedding = keras.layers.Embedding(5, 8, mask_zero=True)
    norm = RMSNormalization()
    gru = keras.layers.GRU(6)
    padded = gru(norm(embedding(tokens)))
    alone = gru(norm(embedding(tokens[1:, :1])))
    np.testing.assert_allclose(to_array(padded[1]), to_array(alone[0]), rtol=1e-5, atol=1e-6)
    model = keras.Sequential([keras.Input((4,), dtype="int32"), embedding, norm, gru])
    np.testing.assert_allclose(to_array(model(tokens)), to_array(padded), rtol=1e-6)


@pytest.mark.parametrize("saved_by_class", [keras.layers.RMSNormalization, RMSNormalization])
@pytest.mark.parametrize("axis", [-1, [1, 2]])  # Keras before 3.15 takes no tuple
def test_loads_weights_saved_by_the_layer_of_keras(saved_by_class, axis, tmp_path):
    def model(layer_class):
        return keras.Sequential([keras.Input((3, 4)), keras.layers.Dense(4), layer_class(axis)])

    saved = model(saved_by_class)
    loaded = model(RMSNormalization)
    saved.layers[1].set_weights([np.random.default_rng(0).normal(size=saved.layers[1].scale.shape)])
    saved.save_weights(tmp_path / "model.weights.h5")
    loaded.load_weights(tmp_path / "model.weights.h5")
    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    assert_close(loaded(x), saved(x))
    assert [w.name for w in saved.layers[1].weights] == [w.name for w in loaded.layers[1].weights]


def test_adamw_leaves_the_gain_out_of_weight_decay():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), RMSNormalization()])
    optimizer = keras.optimizers.AdamW(learning_rate=0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["scale"])
    kernel = model.layers[0].kernel.numpy()
    variables = model.trainable_variables
    optimizer.apply([ops.zeros(v.shape) for v in variables], variables)
    np.testing.assert_array_equal(model.layers[1].scale, np.ones(4))
    np.testing.assert_allclose(model.layers[0].kernel, 0.95 * kernel, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, (0, 2), (1, 2), (2, 1)])
def test_a_mask_over_an_axis_of_the_statistic_is_refused(axis):
    """Padding would change the other entries."""
    embedding = keras.layers.Embedding(9, 4, mask_zero=True)
    layer = RMSNormalization(axis=axis, scale=False, name="norm")
    for tokens in (np.array([[3, 4, 5, 0, 0]]), keras.Input((5,), dtype="int32")):
        with pytest.raises(ValueError, match=r"over axis [01], of which the mask"):
            layer(embedding(tokens))
    layer(ops.ones((1, 5, 4)))


def test_a_mask_of_two_axes_over_the_second_one_is_refused():
    words = keras.layers.Embedding(9, 4, mask_zero=True)(np.array([[[3, 4, 0], [5, 0, 0]]]))
    with pytest.raises(ValueError, match="over axis 2, of which the mask"):
        RMSNormalization(axis=2, scale=False)(words)
    assert RMSNormalization()(words).shape == (1, 2, 3, 4)


def test_only_axis_and_epsilon_are_positional():
    layer = RMSNormalization(1, 1e-3)
    assert (layer.axis, layer.epsilon) == (1, 1e-3)
    with pytest.raises(TypeError, match="positional"):
        RMSNormalization(1, 1e-3, 2)


@pytest.mark.parametrize("fused", [None, False, True])
def test_the_config_names_fused_only_where_it_was_given(fused):
    config = RMSNormalization(fused=fused).get_config()
    assert config.get("fused") is fused
    assert ("fused" in config) == (fused is not None)
    assert RMSNormalization.from_config(config).fused is fused


def test_the_function_in_a_functional_model(tmp_path):
    x = keras.Input((8,))
    gate = keras.Input((8,))
    scale = np.arange(1.0, 9.0, dtype="float32")
    y = rms_norm(x, scale, gate=gate, partial=0.5)
    assert (y.shape, y.dtype) == ((None, 8), "float32")
    model = keras.Model([x, gate], y)
    data = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    expected = reference.rms_norm(data[0], scale, k=4) * reference.silu(data[1])
    assert_close(model(list(data)), expected, factor=2)
    model.save(tmp_path / "model.keras")
    assert_close(keras.models.load_model(tmp_path / "model.keras")(list(data)), expected, factor=2)
    with pytest.raises(ValueError, match="axis=3 is out of range"):
        rms_norm(x, axis=3)


@pytest.mark.parametrize(
    "options",
    [
        {"axis": (1, 2), "scale_axis": (2, 1), "epsilon": 0.1},
        {"partial": 0.5, "groups": 2, "fused": False},
    ],
    ids=str,
)
def test_the_options_of_the_function_are_saved(options, tmp_path):
    x = keras.Input((2, 4))
    model = keras.Model(x, rms_norm(x, **options))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    data = np.random.default_rng(0).normal(size=(3, 2, 4)).astype("float32")
    assert_close(loaded(data), model(data))
    configs = [each.operations[-1].get_config() for each in (model, loaded)]
    given, saved, wanted = json.loads(json.dumps([*configs, options]))  # a file has lists
    assert saved == given
    assert wanted.items() <= saved.items()
    assert saved["name"] == model.operations[-1].name


@pytest.mark.parametrize(
    ("inputs", "shapes"),
    [
        ({"a": np.ones((2, 3), "float32")}, r"{'a': \(2, 3\)}"),
        ([np.ones((2, 3), "float32")], r"\[\(2, 3\)\]"),
    ],
)
def test_a_structure_of_inputs_is_refused(inputs, shapes):
    with pytest.raises(ValueError, match=f"one tensor, got .*{shapes}"):
        RMSNormalization()(inputs)


def test_a_gate_must_be_a_tensor():
    with pytest.raises(TypeError, match="gate must be a tensor, got list"):
        RMSNormalization()(np.ones((1, 2), "float32"), gate=[[1.0, 2.0]])


def test_a_layer_computes_in_a_floating_point_dtype():
    with pytest.raises(
        ValueError,
        match=r"dtype must .* got int32",
    ):
        RMSNormalization(dtype="int32")
