"""Models that 0.1.0 saved load and give the same outputs."""

import functools
import json
import zipfile

import keras
import numpy as np
import pytest
from packaging.version import Version

import rmsnorm_tf
from tests.backends import to_array
from tests.rmsnorm_tf.saved_layers import FOLDER, LAYERS

FILES = sorted(path.stem for path in FOLDER.glob("*.keras"))


@functools.cache
def load(name):
    path = FOLDER / f"{name}.keras"
    with zipfile.ZipFile(path) as file:
        version = json.loads(file.read("metadata.json"))["keras_version"]
    if Version(keras.__version__) < Version(version):
        pytest.skip(f"Keras {keras.__version__} does not read all that Keras {version} has written")
    return keras.models.load_model(path)


def test_every_entry_has_its_files():
    """`python -m tests.rmsnorm_tf.saved_layers` writes what is missing."""
    assert sorted(path.stem for path in FOLDER.glob("*.npz")) == FILES
    assert set(LAYERS) <= set(FILES)


def test_every_public_layer_has_a_file():
    saved = {type(layer).__name__ for name in FILES for layer in load(name)._flatten_layers()}
    public = {getattr(rmsnorm_tf, name) for name in rmsnorm_tf.__all__}
    layers = {
        thing.__name__
        for thing in public
        if isinstance(thing, type) and issubclass(thing, keras.layers.Layer)
    }
    assert layers <= saved


@pytest.mark.parametrize("name", FILES)
def test_a_saved_model_computes_what_it_computed(name):
    model = load(name)
    data = np.load(FOLDER / f"{name}.npz")
    tolerance = 5e-3 if model.layers[-1].dtype_policy.name == "mixed_bfloat16" else 1e-5
    expected = data["y"]
    actual = to_array(model(data["x"]))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.max(np.abs(expected)))
