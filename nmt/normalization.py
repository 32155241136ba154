"""The kinds of normalization the model can be built with, and the one function that builds one.

Every normalization in the model is made here, so this file is all that changes when a kind is added; `patches/nmt`
holds such changes. A kind maps to what builds it from a layer name: a Keras layer over the last axis.
"""

import keras

# Inside the square root, as in Nematus.
EPSILON = 1e-5


def _none(name: str) -> keras.layers.Layer:
    return keras.layers.Identity(name=name)


def _layernorm(name: str) -> keras.layers.Layer:
    return keras.layers.LayerNormalization(epsilon=EPSILON, name=name)


_BUILDERS = {
    "none": _none,
    "layernorm": _layernorm,
}

KINDS = tuple(_BUILDERS)


def build_normalization(kind: str, units: int, name: str) -> keras.layers.Layer:
    """Builds the normalization of one `[..., units]` activation.

    Args:
        kind: One of `KINDS`.
        units: Size of the last axis, over which the statistic runs.
        name: Name of the layer, and so of its weights.

    Returns:
        A built layer that maps `[..., units]` to `[..., units]`.
    """
    layer = _BUILDERS[kind](name)
    layer.build((None, units))
    return layer
