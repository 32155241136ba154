"""Records the inputs of every norm of a model; runs in the patched copy of the baseline."""

from collections.abc import Callable, Iterator

import keras
import tensorflow as tf

from nmt.model.layers import Block
from nmt.normalization import build_normalization

Call = Callable[[tf.Tensor], tf.Tensor]


def record_inputs(model: keras.Model, kind: str) -> dict[str, tuple[Call, list[tf.Tensor]]]:
    """Makes every norm of a model append its inputs `[rows, units]` to a list when the model is called eagerly.

    Args:
        model: The model. Its norms stay replaced.
        kind: Their kind.

    Returns:
        The norm and its list, by the path in the model.
    """
    found: dict[str, tuple[Call, list[tf.Tensor]]] = {}
    for path, owner, name in list(_norms(model, type(build_normalization(kind, 1, "norm")))):
        found[path] = getattr(owner, name), []
        setattr(owner, name, _recording(*found[path]))
    return found


def _norms(layer: keras.layers.Layer, norm: type, path: str = "") -> Iterator[tuple[str, keras.layers.Layer, str]]:
    """Yields the path, owner and attribute of every norm of this type."""
    for name, value in vars(layer).items():
        if isinstance(value, norm):
            yield f"{path}{name}", layer, name
        elif isinstance(value, Block):
            yield from _norms(value, norm, f"{path}{name}.")
        elif isinstance(value, list) and not name.startswith("_"):  # levels; Keras has private lists of all layers
            for block in (each for each in value if isinstance(each, Block)):
                yield from _norms(block, norm, f"{path}{block.name}.")


def _recording(norm: Call, inputs: list[tf.Tensor]) -> Call:
    def call(x: tf.Tensor) -> tf.Tensor:
        inputs.append(x)
        return norm(x)

    return call
