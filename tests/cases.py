"""One table of small cases. Each property that all layers share is tested once over the table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras
import numpy as np

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormGRUCell,
    RMSNormLSTM,
    RMSNormLSTMCell,
    RMSNormSimpleRNNCell,
    fold_layer_norm,
    replace_layer_norm,
    replace_rms_norm,
    rms_norm,
)
from tests import reference, transcription
from tests.backends import BACKEND, to_array

# The largest allowed difference from the float64 equation, relative to its largest value: a few
# rounding errors in the dtype of the result.
TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "bfloat16": 5e-3, "float16": 6e-4}


@keras.saving.register_keras_serializable(package="tests")
class Normalize(keras.layers.Layer):
    """`rms_norm` as a layer, so that the tests of layers can test the function."""

    def call(self, inputs):
        return rms_norm(inputs, partial=0.5, fused=False)

    def compute_output_shape(self, input_shape):
        return input_shape


@dataclass(frozen=True)
class Case:
    """A layer, an input for it, and the output by the equation.

    Attributes:
        name: The id of the test.
        covers: The public name that the case covers.
        make: Makes the layer; its outputs have the shape of its inputs.
        shape: Shape of the input without batch.
        expected: Maps an input and the layer to the output of the reference.
        free: Axes, batch included, that may be unknown in the graph.
        portable: Whether TFLite and ONNX accept the layer.
        differentiable_when_loaded: Whether its SavedModel has gradients. TensorFlow loses gradients
            that are defined in a loop.
        roundings: Factor of `TOLERANCE` for the longest chain of operations.
    """

    name: str
    covers: str
    make: Callable[[], keras.layers.Layer]
    shape: tuple[int, ...]
    expected: Callable[[np.ndarray, keras.layers.Layer], np.ndarray]
    free: Sequence[int] = (0,)
    portable: bool = True
    differentiable_when_loaded: bool = True
    roundings: float = 1

    def input(self, batch: int = 2, dtype: str = "float32") -> np.ndarray:
        return np.random.default_rng(1).normal(size=(batch, *self.shape)).astype(dtype)

    def layer(self) -> keras.layers.Layer:
        """Returns the built layer with weights that all differ."""
        layer = self.make()
        layer.build((None, *self.shape))
        rng = np.random.default_rng(2)
        layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
        return layer

    def model(self, **options) -> keras.Model:
        inputs = keras.Input(self.shape, **options)
        return keras.Model(inputs, self.layer()(inputs))


def rms(*, zero_centered=False, **equation) -> Callable:
    """Returns the function `expected` of a case for these arguments of `reference.rms_norm`."""

    def expected(x, layer):
        weights = {w.name: to_array(w) for w in layer.weights}
        if zero_centered:
            weights["scale"] = 1 + weights["scale"]
        return reference.rms_norm(x, **weights, **equation)

    return expected


def rms_normalization(name, shape, equation=None, *, free=(0,), **arguments) -> Case:
    arguments.setdefault("fused", False)
    return Case(
        name,
        "RMSNormalization",
        lambda: RMSNormalization(**arguments),
        shape,
        rms(zero_centered=arguments.get("zero_centered_scale", False), **(equation or {})),
        free,
        portable=not arguments["fused"],
    )


def gated(name, **arguments) -> Case:
    """A norm with a gate that is computed from the same input, as a model."""

    def make():
        x = keras.Input((5, 8), name="x")
        norm = RMSNormalization(fused=False, name="norm", **arguments)
        return keras.Model(
            x, norm(x, gate=keras.layers.Rescaling(2.0, 0.5, name="gate")(x)), name="model"
        )

    def expected(x, model):
        return reference.rms_norm(x, *model.get_weights(), **arguments) * reference.silu(
            2 * x + 0.5
        )

    return Case(name, "RMSNormalization", make, (5, 8), expected, free=(0, 1), roundings=3)


def recurrent(name, layer_class, **arguments) -> Case:
    """Returns the case of a recurrent layer, or a cell in Keras's RNN, that returns sequences."""

    def make():
        if issubclass(layer_class, keras.layers.RNN):
            return layer_class(8, return_sequences=True, **arguments)
        return keras.layers.RNN(layer_class(8, name="cell", **arguments), return_sequences=True)

    return Case(
        name,
        layer_class.__name__,
        make,
        (5, 8),
        lambda x, layer: transcription.outputs(layer.cell, np.asarray(x, np.float64)),
        free=(0, 1),
        portable=False,
        differentiable_when_loaded=False,
        roundings=20,
    )


def converted(name, convert, norm=keras.layers.LayerNormalization) -> Case:
    """Returns the case of a converted model, used as a layer."""

    def make():
        layers = [keras.layers.Dense(8, name="dense"), norm(epsilon=1e-5, name="norm")]
        model = keras.Sequential([keras.Input((5, 8), name="x"), *layers], name="model")
        convert(model)
        return model

    def expected(x, model):
        kernel, bias, *gain_and_offset = model.get_weights()
        return reference.rms_norm(x @ kernel + bias, *gain_and_offset, epsilon=1e-5)

    return Case(name, name, make, (5, 8), expected, free=(0, 1), roundings=5)


CASES = [
    Case("function", "rms_norm", Normalize, (5, 8), rms(k=4), free=(0, 1)),
    rms_normalization("default", (5, 8), fused=None, free=(0, 1)),
    rms_normalization("compiled", (3, 16), fused=True, free=()),
    rms_normalization("partial", (30,), {"k": 3}, partial=0.1),
    rms_normalization("offset", (6,), scale=False, center=True),
    rms_normalization("zero-centered", (6,), zero_centered_scale=True, center=True),
    rms_normalization("channels-first", (3, 4, 4), {"axis": 1}, axis=1, free=(0, 2, 3)),
    rms_normalization("partial-channels-first", (10, 3), {"axis": 1, "k": 5}, axis=1, partial=0.5),
    rms_normalization("outer-axes", (3, 4, 3), {"axis": (1, 3)}, axis=(-1, 1), center=True),
    rms_normalization("trailing-axes", (3, 4, 3), {"axis": (2, 3)}, axis=(2, 3)),
    rms_normalization(
        "image",
        (4, 5, 3),
        {"axis": (1, 2), "scale_axis": 3},
        axis=(1, 2),
        scale_axis=-1,
        center=True,
        free=(0, 1, 2),
    ),
    rms_normalization("groups", (3, 6), {"groups": 3}, groups=3, center=True, free=(0, 1)),
    rms_normalization(
        "groups-channels-first",
        (6, 4),
        {"axis": 1, "scale_axis": (1, 2), "groups": 2, "k": 2},
        axis=1,
        scale_axis=(1, 2),
        groups=2,
        partial=0.5,
    ),
    gated("gated"),
    gated("gated-groups", groups=2),
    recurrent("simple-rnn-cell", RMSNormSimpleRNNCell),
    recurrent("gru-cell", RMSNormGRUCell, reset_after=False),
    recurrent("lstm-cell", RMSNormLSTMCell, normalization="layer", normalize_carry=True),
    recurrent("gru", RMSNormGRU, partial=0.25),
    recurrent("lstm", RMSNormLSTM),
    converted("replace_layer_norm", replace_layer_norm),
    converted("replace_rms_norm", replace_rms_norm, keras.layers.RMSNormalization),
]
if BACKEND == "tensorflow":
    CASES.append(converted("fold_layer_norm", fold_layer_norm))


def assert_close(actual, expected, dtype: str = "float32", factor: float = 1) -> None:
    """Compares by the largest absolute difference, relative to the largest expected value."""
    actual = to_array(actual)
    expected = to_array(expected)
    assert actual.shape == expected.shape
    bound = factor * TOLERANCE[dtype] * np.max(np.abs(expected), initial=1e-300)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)
