"""Every case of the table works wherever a Keras layer does, on every backend."""

import doctest
import importlib
import inspect
import json
import operator

import keras
import numpy as np
import pytest

import rmsnorm_tf
from tests.backends import BACKEND, compiled, dtype_of, to_array
from tests.cases import CASES, assert_close
from tests.parameters import quick_one_of, slow

by_name = operator.attrgetter("name")
every_case = pytest.mark.parametrize("case", CASES, ids=by_name)
many_cases = pytest.mark.parametrize("case", quick_one_of(2, CASES, by_name))
some_cases = pytest.mark.parametrize("case", quick_one_of(6, CASES, by_name))


def test_every_public_name_has_a_case():
    without = {"Conversion", "ConversionReport", "set_fused"} | (
        {"fold_layer_norm"} if BACKEND != "tensorflow" else set()
    )
    assert {case.covers for case in CASES} == set(rmsnorm_tf.__all__) - without


@pytest.mark.skipif(
    BACKEND != "tensorflow", reason="examples of the docstrings are run on TensorFlow"
)
@pytest.mark.parametrize("name", rmsnorm_tf.__all__)
def test_every_public_name_has_an_example_and_type_hints(name):
    thing = getattr(rmsnorm_tf, name)
    assert doctest.DocTestParser().get_examples(thing.__doc__)
    function = thing.__init__ if isinstance(thing, type) else thing
    parameters = inspect.signature(function).parameters.values()
    assert not [
        each.name for each in parameters if each.name != "self" and each.annotation is each.empty
    ]
    assert importlib.resources.files("rmsnorm_tf").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", ["SimpleRNNCell", "GRUCell", "LSTMCell", "GRU", "LSTM"])
def test_a_docstring_has_the_defaults_of_keras(name):
    described = " ".join(getattr(rmsnorm_tf, f"RMSNorm{name}").__doc__.split()).replace('"', "'")
    keras_cell = getattr(keras.layers, name.removesuffix("Cell") + "Cell")
    _, _, *parameters, _ = inspect.signature(keras_cell.__init__).parameters.values()
    assert [str(each) for each in parameters if str(each) not in described] == []


@every_case
@pytest.mark.parametrize("run", [compiled, *slow(lambda layer: layer)], ids=["compiled", "eager"])
def test_value(case, run):
    layer = case.layer()
    assert_close(
        run(layer)(case.input()), case.expected(case.input(), layer), factor=case.roundings
    )


@many_cases
def test_declared_shape_and_dtype(case):
    model = case.model()
    x = case.input()
    assert model.output_shape == (None, *case.shape)
    assert case.layer().compute_output_shape(x.shape) == tuple(model(x).shape) == x.shape
    assert model.output.dtype == "float32"


def as_given(config):
    """Returns a config without what Keras adds to that of a layer inside once it is built."""
    if isinstance(config, dict):
        return {key: as_given(value) for key, value in config.items() if key != "build_config"}
    return (
        [as_given(element) for element in config] if isinstance(config, (list, tuple)) else config
    )


@many_cases
def test_keras_file(case, tmp_path):
    model = case.model()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_close(loaded(case.input()), model(case.input()))
    assert as_given(loaded.layers[1].get_config()) == as_given(model.layers[1].get_config())


@some_cases
def test_weights_file(case, tmp_path):
    model = case.model()
    other = case.model()
    model.save_weights(tmp_path / "model.weights.h5")
    other.set_weights([np.zeros_like(w) for w in other.get_weights()])
    other.load_weights(tmp_path / "model.weights.h5")
    assert_close(other(case.input()), model(case.input()))


@some_cases
def test_clone(case):
    model = case.model()
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert clone.layers[1] is not model.layers[1]
    assert_close(clone(case.input()), model(case.input()))


@every_case
@pytest.mark.parametrize(
    "policy", [pytest.param("mixed_float16", marks=pytest.mark.slow), "mixed_bfloat16"]
)
def test_mixed_precision(case, policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        layer = case.layer()
        x = case.input()
        y = layer(x)
    finally:
        keras.config.set_dtype_policy(before)
    narrow = layer.compute_dtype
    # A layer that calls the function alone gets its input cast down by Keras, before the function
    # sees it.
    seen = to_array(keras.ops.cast(x, narrow)) if layer.autocast else x
    assert dtype_of(y) == narrow
    assert_close(y, case.expected(seen, layer), narrow, case.roundings)


@some_cases
def test_fit_with_the_default_jit_compile(case):
    keras.utils.set_random_seed(1)
    dense = keras.layers.Dense(case.shape[-1])
    model = keras.Sequential([keras.Input(case.shape), dense, case.layer()])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    x = case.input(8)
    y = case.input(8)[::-1]
    losses = model.fit(x, y, batch_size=8, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[1] < losses[0]


@many_cases
def test_config_survives_json(case):
    layer = case.make()
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    built = as_given(case.layer().get_config()) | {"name": layer.name}
    assert as_given(again.get_config()) == as_given(layer.get_config()) == built
