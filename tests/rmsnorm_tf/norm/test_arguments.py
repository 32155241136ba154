"""Arguments and inputs that are refused, with their messages, and the config of the layer."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormLSTM,
    RMSNormLSTMCell,
    RMSNormSimpleRNNCell,
    rms_norm,
)
from rmsnorm_tf.norm.arguments import prefix_size

NUMBER = "must be None or a number.* got"
BAD_ARGUMENTS = [
    ({"axis": 1.5}, "axis must be an integer.* got 1.5. Pass"),
    ({"axis": True}, "axis must be an integer.* got True"),
    ({"axis": None}, "axis must be an integer.* got None"),
    ({"axis": "1"}, "axis must be an integer.* got '1'"),
    ({"axis": ()}, r"axis must be an integer.* got \(\)"),
    ({"scale_axis": 1e-5}, "scale_axis must be an integer"),
    ({"epsilon": -1}, "epsilon must be .* 1e-34, got -1"),
    ({"epsilon": 0}, "epsilon must be a finite number"),
    ({"epsilon": 1e-37}, "epsilon must be a finite number"),
    ({"epsilon": float("nan")}, "epsilon must be a finite number"),
    ({"epsilon": float("inf")}, "epsilon must be a finite number"),
    ({"epsilon": "1e-6"}, "epsilon must be a finite number"),
    ({"epsilon": True}, "epsilon must be a finite number"),
    ({"partial": 0}, f"partial {NUMBER} 0. "),
    ({"partial": -1}, f"partial {NUMBER} -1"),
    ({"partial": 1.01}, f"partial {NUMBER} 1.01"),
    ({"partial": float("nan")}, f"partial {NUMBER} nan"),
    ({"partial": True}, f"partial {NUMBER} True"),
    (
        {"partial": 0.5, "axis": (1, 2)},
        r"partial=0.5 .* axis=\(1, 2\)",
    ),
    ({"fused": "yes"}, "fused must be .* got 'yes'"),
]
LAYER_ONLY = [
    ({"scale": 1}, "scale must be one of True, False, got 1"),
    ({"center": None}, "center must be one of True, False, got None"),
    ({"zero_centered_scale": "no"}, "zero_centered_scale .* got 'no'"),
    ({"zero_centered_scale": True, "scale": False}, "zero_centered_scale=True needs a scale"),
]
BAD_SHAPES = [
    ({"axis": 5}, (2, 3, 4), r"axis=5 .*\(2, 3, 4\).* -3 to 2"),
    (
        {"axis": 4},
        (2, 3, 4),
        "number of an axis, not its size",
    ),
    ({"axis": (1, -4)}, (2, 3, 4), r"axis=\(1, -4\) is out of range"),
    ({"scale_axis": 3}, (2, 3, 4), "scale_axis=3 is out of range"),
    ({"axis": (1, 1)}, (2, 3, 4), "twice"),
    ({"axis": (1, -2)}, (2, 3, 4), r"axis=\(1, -2\) .*twice .*\(2, 3, 4\)"),
    ({}, (), "a scalar has no axes"),
    ({}, (2, 0), "axis=-1 has size 0"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ARGUMENTS, ids=str)
def test_wrong_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        RMSNormalization(**arguments)
    with pytest.raises(ValueError, match=message):
        rms_norm(ops.ones((2, 3, 4)), **arguments)


@pytest.mark.parametrize(("arguments", "message"), LAYER_ONLY, ids=str)
def test_wrong_argument_of_the_layer(arguments, message):
    with pytest.raises(ValueError, match=message):
        RMSNormalization(**arguments)


@pytest.mark.parametrize(("arguments", "shape", "message"), BAD_SHAPES, ids=str)
def test_wrong_shape(arguments, shape, message):
    layer = RMSNormalization(**arguments)
    with pytest.raises(ValueError, match=message):
        layer.build(shape)
    with pytest.raises(ValueError, match=message):
        layer.compute_output_shape(shape)
    with pytest.raises(ValueError, match=message):
        rms_norm(ops.ones(shape), **arguments)


def test_unknown_arguments():
    with pytest.raises(TypeError, match="'eps'"):
        rms_norm(ops.ones((2, 4)), eps=1e-5)
    for make in (RMSNormalization, lambda **options: RMSNormGRU(4, **options)):
        with pytest.raises(ValueError, match="'eps'"):
            make(eps=1e-5)


@pytest.mark.parametrize("layer", [RMSNormGRU, RMSNormLSTMCell, RMSNormSimpleRNNCell])
def test_recurrent_layers_take_the_arguments_of_keras(layer):
    with pytest.raises(TypeError, match="units"):
        layer()
    config = layer(8, "relu").get_config()
    assert config["activation"] == layer(8, activation="relu").get_config()["activation"]


@pytest.mark.parametrize(("scale", "message"), [(-1, "axis=-1"), (False, "Pass None for no scale")])
def test_an_axis_or_a_switch_in_the_place_of_the_scale(scale, message):
    with pytest.raises(TypeError, match=message):
        rms_norm(ops.ones((2, 4)), scale)


def test_an_initial_state_that_lacks_a_part():
    with pytest.raises(ValueError, match=r"2 states of sizes \[8, 8\], got 1"):
        RMSNormLSTM(8)(ops.ones((2, 5, 8)), initial_state=[ops.zeros((2, 8))])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {},
            r"axes \(2,\).*\(None, 3, None\).*scale=False",
        ),
        (
            {"scale": False, "center": True},
            r"axes \(2,\).*center=False",
        ),
        (
            {"partial": 0.5, "scale": False},
            r"partial=0.5 .*axis -1",
        ),
    ],
    ids=str,
)
def test_an_unknown_size_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RMSNormalization(**arguments).build((None, 3, None))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "complex64"])
def test_input_that_is_not_floating_point_is_refused(dtype):
    x = ops.cast([[1, 0, 3, 4]], dtype)
    message = f"must be float16.*got {dtype}. Cast"
    with pytest.raises(TypeError, match=f"x {message}"):
        rms_norm(x)
    with pytest.raises(TypeError, match=f"inputs {message}"):
        RMSNormalization()(x)
    if dtype != "complex64":
        with pytest.raises(TypeError, match=f"inputs {message}"):
            RMSNormalization()(keras.Input((4,), dtype=dtype))


@pytest.mark.parametrize("name", ["scale", "offset"])
def test_a_weight_of_another_shape_or_type_is_refused(name):
    x = ops.ones((2, 3, 4))
    with pytest.raises(ValueError, match=rf"{name} .*\(3,\).*\(2, 3, 4\) needs \(4,\)"):
        rms_norm(x, **{name: ops.ones(3)})
    with pytest.raises(ValueError, match=rf"{name} has shape \(\)"):
        rms_norm(x, **{name: 2.0})
    with pytest.raises(TypeError, match=f"{name} must be float16"):
        rms_norm(x, **{name: ops.ones(4, "int32")})


@pytest.mark.parametrize(
    "axis", [-1, (1, -1), [2, 1], np.int64(-1), (np.int32(2), 1), np.array([1, 2]), range(1, 3)]
)
def test_config_is_json_and_the_same_before_and_after_build(axis):
    layer = RMSNormalization(
        axis=axis,
        epsilon=np.float32(0.5),
        center=True,
        scale_initializer=keras.initializers.RandomNormal(0.1, seed=3),
        scale_regularizer="l2",
        offset_constraint="non_neg",
        fused=False,
        name="norm",
    )
    before = json.dumps(layer.get_config())
    layer.build((None, 3, 4))
    assert json.dumps(layer.get_config()) == before
    assert np.array_equal(layer.axis, axis)
    again = RMSNormalization.from_config(json.loads(before))
    assert json.dumps(again.get_config()) == before
    assert again.axis == layer.axis


def test_numbers_of_numpy_are_plain_in_the_config():
    config = RMSNormalization(
        epsilon=np.float32(0.5), partial=np.float16(0.25), groups=np.int64(2)
    ).get_config()
    again = RMSNormalization.from_config(json.loads(json.dumps(config)))
    assert (again.epsilon, again.partial, again.groups) == (0.5, 0.25, 2)


def test_config_has_every_argument():
    arguments = {
        "axis": 1,
        "groups": 3,
        "scale_axis": 2,
        "epsilon": 0.25,
        "partial": 0.5,
        "scale": True,
        "center": True,
        "zero_centered_scale": True,
        "scale_initializer": keras.initializers.Constant(2.0),
        "offset_initializer": keras.initializers.Constant(3.0),
        "scale_regularizer": keras.regularizers.L1(0.5),
        "offset_regularizer": keras.regularizers.L2(0.5),
        "scale_constraint": keras.constraints.MaxNorm(1.0),
        "offset_constraint": keras.constraints.NonNeg(),
        "fused": True,
    }
    config = RMSNormalization(**arguments).get_config()
    assert config.keys() - {"name", "trainable", "dtype"} == arguments.keys()
    again = RMSNormalization.from_config(config)
    for name in (
        "axis",
        "groups",
        "scale_axis",
        "epsilon",
        "partial",
        "center",
        "zero_centered_scale",
        "fused",
    ):
        assert getattr(again, name) == arguments[name]
    for name in (
        a for a in arguments if a.rpartition("_")[2] in ("initializer", "regularizer", "constraint")
    ):
        assert type(getattr(again, name)) is type(arguments[name])


@pytest.mark.parametrize("digits", [1, 4, 8])
def test_a_part_has_the_same_share_of_rows_of_any_size(digits):
    size = 10**digits
    assert prefix_size(size, 0.1) == size // 10
    assert prefix_size(3 * size, float(np.float32(0.1))) == 3 * size // 10
    assert prefix_size(size, 1.0) == size
    assert prefix_size(size, 0.25 / size) == 1
