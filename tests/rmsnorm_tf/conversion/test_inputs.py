"""What a conversion is given, and what it refuses."""

import keras
import pytest

from rmsnorm_tf import fold_layer_norm, replace_layer_norm, replace_rms_norm
from tests.folding import dense, layers, norm


@keras.saving.register_keras_serializable(package="tests")
class Either(layers.Layer):
    def call(self, both):
        x, y = both
        return x if y is None else y


def test_a_model_with_an_optional_input_is_not_folded():
    x = keras.Input((4, 6))
    y = keras.Input((4, 6), optional=True)
    model = keras.Model([x, y], norm("norm")(dense()(Either()([x, y]))), name="model")
    with pytest.raises(ValueError, match="'model' has optional inputs"):
        fold_layer_norm(model)
    assert replace_layer_norm(model).entries[0].converted


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm, replace_rms_norm])
@pytest.mark.parametrize("given", [3, "model.keras", layers.Dense(2)])
def test_something_else_than_a_model_is_refused(convert, given):
    with pytest.raises(TypeError, match=rf"{convert.__name__} .*{type(given).__name__}\."):
        convert(given)


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_layer_norm, replace_rms_norm])
@pytest.mark.parametrize(
    "make", [lambda: keras.Sequential([dense()], name="model"), lambda: keras.Model(name="model")]
)
def test_a_model_without_an_input_is_refused(convert, make):
    with pytest.raises(ValueError, match=r"'model' has no input"):
        convert(make())


def test_the_option_of_folding_is_true_or_false():
    model = keras.Sequential([keras.Input((3,)), norm("norm")])
    with pytest.raises(ValueError, match=r"for_inference .*'yes'"):
        fold_layer_norm(model, for_inference="yes")
