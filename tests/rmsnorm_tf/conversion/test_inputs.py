"""What a conversion is given: models with optional inputs, which a call may leave out, and what it refuses."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import fold_layer_norm, replace_layer_norm, replace_rms_norm
from tests.folding import dense, layers, norm, with_drawn_weights


def either_or(inputs):
    x, y = inputs
    return keras.ops.relu(x) if y is None else y


@pytest.mark.filterwarnings("ignore:.*Lambda")
@pytest.mark.parametrize("structure", [list, lambda inputs: dict(zip("xyz", inputs, strict=True))])
def test_calls_without_the_optional_inputs_are_looked_into(structure):
    inputs = [
        keras.Input((4, 6), name="x"),
        *(keras.Input((4, 6), name=name, optional=True) for name in "yz"),
    ]
    streams = [dense(name)(inputs[0]) for name in ("seen", "unseen")]
    first = layers.Lambda(either_or, output_shape=(4, 6), name="first")([streams[0], inputs[1]])
    second = layers.Lambda(either_or, output_shape=(4, 6), name="second")([first, inputs[2]])
    model = keras.Model(
        structure(inputs), [norm("norm")(streams[0]), norm("folded")(streams[1]), second]
    )
    data = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    ways = [
        structure(given) for given in ([data, None, None], [data, data, None], [data, data, data])
    ]
    before = [with_drawn_weights(model)(given) for given in ways]
    report = fold_layer_norm(model).entries
    assert {entry.name: entry.converted for entry in report} == {"norm": False, "folded": True}
    for given, expected in zip(ways, before, strict=True):
        for a, b in zip(model(given), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@keras.saving.register_keras_serializable(package="tests")
class OneOfTwo(layers.Layer):
    def call(self, x):
        if all(t is None for t in x):
            raise ValueError("Give one of them.")
        return x[0] if x[1] is None else x[1]


def test_a_model_may_need_one_of_two_optional_inputs():
    inputs = [keras.Input((4, 6), optional=True) for _ in range(2)]
    model = with_drawn_weights(keras.Model(inputs, norm("norm")(dense()(OneOfTwo()(inputs)))))
    data = np.ones((2, 4, 6))
    before = model([data, None])
    [entry] = fold_layer_norm(model).entries
    assert entry.converted
    np.testing.assert_allclose(model([data, None]), before, rtol=0, atol=1e-5)


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm, replace_rms_norm])
@pytest.mark.parametrize("given", [3, "model.keras", layers.Dense(2)])
def test_something_else_than_a_model_is_refused(convert, given):
    message = (
        rf"{convert.__name__} changes a keras.Model, got a {type(given).__name__}. Pass a model."
    )
    with pytest.raises(TypeError, match=message):
        convert(given)


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm, replace_rms_norm])
@pytest.mark.parametrize(
    "make", [lambda: keras.Sequential([dense()], name="model"), lambda: keras.Model(name="model")]
)
def test_a_model_without_an_input_is_refused(convert, make):
    with pytest.raises(
        ValueError, match=r"'model' has no input yet. Call it once, or give it a keras.Input."
    ):
        convert(make())


def test_the_option_of_folding_is_true_or_false():
    model = keras.Sequential([keras.Input((3,)), norm("norm")])
    with pytest.raises(ValueError, match="for_inference must be one of True, False, got 'yes'"):
        fold_layer_norm(model, for_inference="yes")
