"""The kinds of normalization, and the function that builds one.

The models build every normalization here, so a new kind changes this file alone. The patches in
`patches/nmt` do that. A builder imports what it needs, so that the command line knows the kinds
before Keras is loaded.
"""

from typing import Any

# Inside the square root, as in Nematus.
EPSILON = 1e-5


def _none(name: str) -> Any:
    import keras

    return keras.layers.Identity(name=name)


def _layernorm(name: str) -> Any:
    import keras

    return keras.layers.LayerNormalization(epsilon=EPSILON, name=name)


# From a layer's name to a Keras layer over the last axis.
_BUILDERS = {
    "none": _none,
    "layernorm": _layernorm,
}

KINDS = tuple(_BUILDERS)


def weight_of_kind(path: str, kind: str, other: str) -> str | None:
    """Returns the path that a weight of a model has in one of another kind, or `None` if that has
    no such weight.

    Gains are those that begin with one, offsets those that begin with zero.
    """
    *layer, name = path.split("/")
    own = {weight.name: weight[0] for weight in build_normalization(kind, 1, "norm").weights}
    if name not in own:
        return path
    others = [
        weight.name
        for weight in build_normalization(other, 1, "norm").weights
        if weight[0] == own[name]
    ]
    return "/".join([*layer, *others]) if others else None


def build_normalization(kind: str, units: int, name: str, epsilon: float = EPSILON) -> Any:
    """Builds the normalization of one `[..., units]` activation.

    Args:
        kind: One of `KINDS`.
        units: Size of the last axis, over which the statistic runs.
        name: Name of the layer; it is part of the paths of its weights.
        epsilon: The constant inside the square root.

    Returns:
        A built layer that maps `[..., units]` to `[..., units]`.
    """
    layer = _BUILDERS[kind](name)
    layer.epsilon = epsilon
    layer.build((None, units))
    return layer
