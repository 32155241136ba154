"""Models with LayerNorm, and the comparison of their outputs before and after a conversion."""

import keras
import numpy as np

from rmsnorm_tf import RMSNormalization, fold_layer_norm
from tests.backends import to_array

layers = keras.layers

# Relative to the largest output.
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "mixed_bfloat16": 2e-2, "mixed_float16": 3e-3}


def with_drawn_weights(model, seed=0):
    """Sets all weights to random numbers whose mean is not zero: none is centred by chance."""
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0.3, 0.7, size=w.shape) for w in model.weights])
    return model


def draw_inputs(model, batch=3, seed=1):
    rng = np.random.default_rng(seed)
    return [
        rng.integers(1, 5, (batch, *x.shape[1:]))
        if "int" in x.dtype
        else rng.normal(size=(batch, *x.shape[1:]))
        for x in model.inputs
    ]


def outputs_of(model):
    """Returns the outputs of a model for random inputs."""
    inputs = draw_inputs(model)
    return [
        to_array(y) for y in keras.tree.flatten(model(inputs[0] if len(inputs) == 1 else inputs))
    ]


def assert_same_outputs(expected, model):
    """Compares the outputs of a model with others, or with those of another model."""
    tolerance = TOLERANCE[keras.config.dtype_policy().name]
    expected = outputs_of(expected) if isinstance(expected, keras.Model) else expected
    for a, e in zip(outputs_of(model), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=tolerance * np.max(np.abs(e)))


def converted(convert, model, **options):
    """Converts a model, asserts that its outputs stay, and returns the entries of the report."""
    expected = outputs_of(model)
    report = convert(model, **options)
    assert_same_outputs(expected, model)
    return report.entries


def fold(model):
    """Folds a model with drawn weights, compares outputs, and returns the report by name."""
    entries = converted(fold_layer_norm, with_drawn_weights(model))
    assert entries
    named = {layer.name: layer for layer in model.layers}
    for entry in entries:
        if entry.name in named and isinstance(
            named[entry.name], (RMSNormalization, layers.LayerNormalization)
        ):
            assert isinstance(named[entry.name], RMSNormalization) == entry.converted
    assert len({entry.name for entry in entries}) == len(entries)
    assert not [entry for entry in entries if "not checked" in entry.reason]
    return {entry.name: entry for entry in entries}


def norm(name, **arguments):
    return layers.LayerNormalization(name=name, **arguments)


def dense(name="dense", units=6, **arguments):
    return layers.Dense(units, name=name, **arguments)


def feed_forward(x, number, units=6):
    y = norm(f"norm_{number}b")(x)
    y = layers.Dense(10, "gelu", name=f"hidden_{number}")(y)
    return x + layers.Dense(units, name=f"out_{number}")(y)


def pre_ln_transformer(dropout=0.0, blocks=2):
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    positions = keras.Input((5,), dtype="int32", name="positions")
    x = layers.Embedding(7, 6, name="words")(tokens) + layers.Embedding(5, 6, name="places")(
        positions
    )
    for i in range(blocks):
        y = norm(f"norm_{i}a")(x)
        y = layers.MultiHeadAttention(2, 3, name=f"attention_{i}")(y, y)
        x = layers.Add(name=f"sum_{i}")([x, layers.Dropout(dropout, name=f"dropout_{i}")(y)])
        x = feed_forward(x, i)
    return keras.Model([tokens, positions], layers.Dense(3, name="head")(norm("last")(x)))


def tagger(recurrent):
    words = keras.Input((5,), dtype="int32")
    x = recurrent(layers.Embedding(7, 4, mask_zero=True)(words))
    return keras.Model(
        words, layers.Dense(3, name="tags")(norm("norm")(layers.Dense(6, name="dense")(x)))
    )


LN = {"normalization": "layer", "return_sequences": True}
