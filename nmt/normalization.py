"""The kinds of normalization, and the function that builds one.

The models build every normalization here, so a new kind changes this file alone. The patches in
`patches/nmt` do that. A builder imports what it needs, so that the command line knows the kinds
before Keras is loaded.
"""

import inspect
from typing import Any, NamedTuple

# Inside the square root, as in Nematus.
EPSILON = 1e-5


def _none(name: str) -> Any:
    import keras

    return keras.layers.Identity(name=name)


def _layernorm(name: str, center: bool = True) -> Any:
    import keras

    return keras.layers.LayerNormalization(epsilon=EPSILON, center=center, name=name)


# From a layer's name, and whether it has an offset, to a Keras layer over the last axis.
_BUILDERS = {
    "none": _none,
    "layernorm": _layernorm,
}
# Names that layers of different kinds give their gain, and their offset.
_SAME_WEIGHTS = (("gamma", "scale"), ("beta", "offset"))

KINDS = tuple(_BUILDERS)


class Normalization(NamedTuple):
    """What the normalizations of a model are."""

    kind: str  # one of `KINDS`
    center: bool | None = None  # whether they have an offset; `None`: as is usual for the kind
    epsilon: float = EPSILON

    def __str__(self) -> str:
        offset = {None: "", True: " with offsets", False: " without offsets"}
        return f"{self.kind}{offset[self.center]}"


def may_center(kind: str) -> bool:
    """Returns whether a layer of this kind can have an offset, and can lack it."""
    return "center" in inspect.signature(_BUILDERS[kind]).parameters


def paths_of_weight(path: str) -> list[str]:
    """Returns the paths that a weight may have in a model of another kind, its own first."""
    layer, _, name = path.rpartition("/")
    names = [name]
    for same in _SAME_WEIGHTS:
        if name in same:
            names += same
    return [f"{layer}/{each}" for each in names]


def build_normalization(normalization: Normalization, units: int, name: str) -> Any:
    """Builds the normalization of one `[..., units]` activation.

    Args:
        normalization: Its kind, whether it has an offset, and its epsilon.
        units: Size of the last axis, over which the statistic runs.
        name: Name of the layer; it is part of the paths of its weights.

    Returns:
        A built layer that maps `[..., units]` to `[..., units]`.
    """
    kind, center, epsilon = normalization
    layer = _BUILDERS[kind](name, **({} if center is None else {"center": center}))
    if epsilon != EPSILON:
        layer.epsilon = epsilon
    layer.build((None, units))
    return layer
