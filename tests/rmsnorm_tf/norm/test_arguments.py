"""Arguments and inputs that are refused, with their messages, and the config of the layer."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormGRUCell,
    RMSNormLSTM,
    RMSNormLSTMCell,
    RMSNormSimpleRNNCell,
    rms_norm,
)

NUMBER = "must be None or a number above 0 and at most 1, got"
BAD_ARGUMENTS = [
    ({"axis": 1.5}, "axis must be an integer or a non-empty sequence of integers, got 1.5. Pass"),
    ({"axis": True}, "axis must be an integer or a non-empty sequence of integers, got True"),
    ({"axis": None}, "axis must be an integer or a non-empty sequence of integers, got None"),
    ({"axis": "1"}, "axis must be an integer or a non-empty sequence of integers, got '1'"),
    ({"axis": ()}, r"axis must be an integer or a non-empty sequence of integers, got \(\)"),
    ({"axis": (1, 1)}, r"axis must name each axis once, got \(1, 1\). Drop"),
    ({"scale_axis": 1e-5}, "scale_axis must be an integer"),
    ({"epsilon": -1}, "epsilon must be a finite number of at least 1e-34, got -1. It keeps"),
    ({"epsilon": 0}, "epsilon must be a finite number"),
    ({"epsilon": 1e-37}, "epsilon must be a finite number"),
    ({"epsilon": float("nan")}, "epsilon must be a finite number"),
    ({"epsilon": float("inf")}, "epsilon must be a finite number"),
    ({"epsilon": "1e-6"}, "epsilon must be a finite number"),
    ({"epsilon": True}, "epsilon must be a finite number"),
    ({"partial": 0}, f"partial {NUMBER} 0. The paper uses 0.0625"),
    ({"partial": -1}, f"partial {NUMBER} -1"),
    ({"partial": 1.01}, f"partial {NUMBER} 1.01"),
    ({"partial": float("nan")}, f"partial {NUMBER} nan"),
    ({"partial": True}, f"partial {NUMBER} True"),
    (
        {"partial": 0.5, "axis": (1, 2)},
        r"partial=0.5 needs a single axis, got axis=\(1, 2\).* Merge the axes",
    ),
    ({"fused": "yes"}, "fused must be one of True, False, None, got 'yes'"),
]
LAYER_ONLY = [
    ({"scale": 1}, "scale must be one of True, False, got 1"),
    ({"center": None}, "center must be one of True, False, got None"),
    ({"zero_centered_scale": "no"}, "zero_centered_scale must be one of True, False, got 'no'"),
    ({"zero_centered_scale": True, "scale": False}, "zero_centered_scale=True needs a scale"),
]
BAD_SHAPES = [
    ({"axis": 5}, (2, 3, 4), r"axis=5 is out of range .*\(2, 3, 4\): allowed are -3 to 2. Choose"),
    (
        {"axis": 4},
        (2, 3, 4),
        "axis takes the number of an axis, not its size. Use -1 for the last axis.",
    ),
    ({"axis": (1, -4)}, (2, 3, 4), r"axis=\(1, -4\) is out of range"),
    ({"scale_axis": 3}, (2, 3, 4), "scale_axis=3 is out of range"),
    ({"axis": (1, -2)}, (2, 3, 4), r"axis=\(1, -2\) names an axis twice .*\(2, 3, 4\). Drop"),
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


HABITS = [
    ({"eps": 1e-5}, "has no argument 'eps'. Use 'epsilon' instead."),
    ({"variance_epsilon": 1e-5}, "has no argument 'variance_epsilon'. Use 'epsilon' instead."),
    ({"p": 0.0625}, "has no argument 'p'. Use 'partial' instead."),
    ({"axes": -1}, "has no argument 'axes'. Use 'axis' instead."),
    ({"dim": -1}, "has no argument 'dim'. Use 'axis' instead."),
    ({"reduction_axes": -1}, "has no argument 'reduction_axes'. Use 'axis' instead."),
    ({"feature_axes": -1}, "has no argument 'feature_axes'. Use 'scale_axis' instead."),
    ({"gamma": None}, "has no argument 'gamma'. Use 'scale' instead."),
    ({"weight": None}, "has no argument 'weight'. Use 'scale' instead."),
    (
        {"norm_before_gate": True},
        "has no argument 'norm_before_gate': the gate multiplies the normalized input",
    ),
    (
        {"rms_scaling": True},
        "has no argument 'rms_scaling': RMS normalization is what this always computes. Drop it.",
    ),
    ({"num_groups": 2}, "has no argument 'num_groups'. Use 'groups' instead."),
    ({"group_size": 2}, "has no argument 'group_size': groups takes the number of groups"),
    ({"hidden_size": 4}, "has no argument 'hidden_size': sizes come from the input. Drop it."),
    ({"num_features": 4}, "has no argument 'num_features': sizes come from the input. Drop it."),
    (
        {"param_dtype": "float32"},
        "has no argument 'param_dtype': weights are float32 or wider, and",
    ),
    (
        {"use_fast_variance": True},
        "has no argument 'use_fast_variance': RMS normalization computes no variance",
    ),
    ({"normalized_shape": 4}, "has no argument 'normalized_shape': sizes come from the input"),
]
HABITS_OF_LAYERS = [
    (
        {"gamma_initializer": "ones"},
        "has no argument 'gamma_initializer'. Use 'scale_initializer' instead.",
    ),
    (
        {"gamma_regularizer": "l2"},
        "has no argument 'gamma_regularizer'. Use 'scale_regularizer' instead.",
    ),
    (
        {"gamma_constraint": None},
        "has no argument 'gamma_constraint'. Use 'scale_constraint' instead.",
    ),
    (
        {"beta_initializer": "ones"},
        "has no argument 'beta_initializer'. Use 'offset_initializer' instead.",
    ),
    (
        {"beta_regularizer": "l2"},
        "has no argument 'beta_regularizer'. Use 'offset_regularizer' instead.",
    ),
    (
        {"beta_constraint": None},
        "has no argument 'beta_constraint'. Use 'offset_constraint' instead.",
    ),
    (
        {"zero_centered_gamma": True},
        "has no argument 'zero_centered_gamma'. Use 'zero_centered_scale' instead.",
    ),
    (
        {"add_unit_offset": True},
        "has no argument 'add_unit_offset'. Use 'zero_centered_scale' instead.",
    ),
    ({"scale_init": "ones"}, "has no argument 'scale_init'. Use 'scale_initializer' instead."),
    ({"use_bias": True}, "has no argument 'use_bias'. Use 'center' instead."),
    ({"bias": True}, "has no argument 'bias'. Use 'center' instead."),
    ({"beta": True}, "has no argument 'beta'. Use 'center' instead."),
    ({"bias_init": "ones"}, "has no argument 'bias_init'. Use 'offset_initializer' instead."),
    (
        {"bias_initializer": "ones"},
        "has no argument 'bias_initializer'. Use 'offset_initializer' instead.",
    ),
    (
        {"bias_regularizer": "l2"},
        "has no argument 'bias_regularizer'. Use 'offset_regularizer' instead.",
    ),
    (
        {"bias_constraint": None},
        "has no argument 'bias_constraint'. Use 'offset_constraint' instead.",
    ),
    ({"elementwise_affine": False}, "has no argument 'elementwise_affine'. Use 'scale' instead."),
    ({"use_scale": False}, "has no argument 'use_scale'. Use 'scale' instead."),
]


@pytest.mark.parametrize(("arguments", "message"), HABITS + HABITS_OF_LAYERS, ids=str)
def test_arguments_of_other_libraries_name_ours(arguments, message):
    with pytest.raises(TypeError, match=f"RMSNormalization {message}"):
        RMSNormalization(**arguments)
    if (arguments, message) in HABITS:
        with pytest.raises(TypeError, match=f"rms_norm {message}"):
            rms_norm(ops.ones((2, 4)), **arguments)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bias", "has no argument 'bias'. Use 'offset' instead."),
        ("beta", "has no argument 'beta'. Use 'offset' instead."),
        ("z", "has no argument 'z'. Use 'gate' instead."),
        ("use_scale", "has no argument 'use_scale'. Use 'scale' instead."),
        ("elementwise_affine", "has no argument 'elementwise_affine'. Use 'scale' instead."),
        ("center", "has no argument 'center'. Use 'offset' instead."),
    ],
)
def test_functions_take_tensors_instead_of_switches(name, message):
    with pytest.raises(TypeError, match=f"rms_norm {message}"):
        rms_norm(ops.ones((2, 4)), **{name: False})
    with pytest.raises(
        TypeError, match=r"scale must be a tensor or None, got False. Pass None for no scale."
    ):
        rms_norm(ops.ones((2, 4)), scale=False)


@pytest.mark.parametrize(
    "name",
    [
        "gamma_initializer",
        "beta_initializer",
        "scale",
        "use_scale",
        "scale_regularizer",
        "offset_constraint",
        "center",
        "zero_centered_scale",
    ],
)
def test_cells_have_no_options_of_gains(name):
    with pytest.raises(
        TypeError, match=f"RMSNormGRU has no argument '{name}': its norms always have a gain"
    ):
        RMSNormGRU(4, **{name: None})


def test_other_unknown_arguments():
    with pytest.raises(
        TypeError, match=r"rms_norm\(\) got an unexpected keyword argument 'colour'"
    ):
        rms_norm(ops.ones((2, 4)), colour="red")
    with pytest.raises(ValueError, match="colour"):
        RMSNormalization(colour="red")
    with pytest.raises(TypeError, match=r"RMSNormGRU has no argument 'eps'. Use 'epsilon' instead"):
        RMSNormGRU(4, eps=1e-5)


@pytest.mark.parametrize(
    "layer", [RMSNormGRU, RMSNormGRUCell, RMSNormLSTM, RMSNormLSTMCell, RMSNormSimpleRNNCell]
)
def test_recurrent_layers_name_themselves(layer):
    name = layer.__name__
    with pytest.raises(
        TypeError, match=f"{name} needs units, the size of its state. Pass a positive integer."
    ):
        layer()
    with pytest.raises(
        TypeError,
        match=f"{name} has no argument 'layer_norm'. Use 'normalization=\"layer\"' instead.",
    ):
        layer(8, layer_norm=True)
    with pytest.raises(
        TypeError, match=f"{name} has no argument 'time_major': the batch is the first axis"
    ):
        layer(8, time_major=True)
    assert (
        layer(8, "relu").get_config()["activation"]
        == layer(8, activation="relu").get_config()["activation"]
    )


def test_an_axis_in_the_place_of_the_scale():
    with pytest.raises(
        TypeError, match=r"scale must be a tensor or None, got -1. If it is an axis, pass axis=-1."
    ):
        rms_norm(ops.ones((2, 4)), -1)


def test_an_initial_state_that_lacks_a_part():
    with pytest.raises(
        ValueError, match=r"has 2 states of sizes \[8, 8\], got 1 as its initial state"
    ):
        RMSNormLSTM(8)(ops.ones((2, 5, 8)), initial_state=[ops.zeros((2, 8))])


def test_wrong_shape_stops_a_functional_model():
    with pytest.raises(ValueError, match="axis=4 is out of range"):
        RMSNormalization(axis=4)(keras.Input((3, 4)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {},
            r"need the sizes of the axes \(2,\).*\(None, 3, None\). Give them fixed sizes, or use scale=False",
        ),
        (
            {"scale": False, "center": True},
            r"need the sizes of the axes \(2,\).*, or use scale=False, center=False",
        ),
        (
            {"partial": 0.5, "scale": False},
            r"partial=0.5 takes a part of axis -1, whose size is unknown",
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
    message = f"must be float16, bfloat16, float32 or float64, got {dtype}. Cast it first"
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
    with pytest.raises(
        ValueError, match=rf"{name} has shape \(3,\), but x of shape \(2, 3, 4\) needs \(4,\)"
    ):
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
