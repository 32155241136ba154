"""A copy of a functional model in which some layers are replaced."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from rmsnorm_tf._layer import RMSNormalization
from rmsnorm_tf._model_graph import functional_class

Weights = list[np.ndarray]
Convert = Callable[[keras.Layer], tuple[keras.Layer, Weights]]


def is_plain(layer: keras.Layer) -> bool:
    """Whether the layer is a model that only calls its layers in the order of its graph."""
    return type(layer) in (keras.Sequential, functional_class())


def check_model(model: keras.Model) -> None:
    """Raises an error unless the model can be copied with all its weights, as far as can be seen beforehand."""
    if not is_plain(model):
        raise TypeError(
            f"Only sequential and functional models show which layer calls which, got a {type(model).__name__}. Make "
            "it functional: keras.Model(inputs, outputs) of its layers called on keras.Input."
        )
    if not model.built:
        raise ValueError(f"The model {model.name!r} has no input yet. Give it a keras.Input as its first layer.")
    owners: dict[int, keras.Layer] = {}
    for _, _, layer in walk(model):
        for weight in layer.weights:
            owner = owners.setdefault(id(weight), layer)
            if owner is not layer:
                raise ValueError(
                    f"The layers {owner.name!r} and {layer.name!r} share the weight {weight.path!r}, but their copies "
                    "would not. Convert a model that ends before the second one, or give that one a weight of its own."
                )
    for _, _, layer in walk(model):
        _attempt(layer, layer.get_config)


def walk(model: keras.Model, prefix: str = "") -> Iterator[tuple[str, keras.Model, keras.Layer]]:
    """Yields each layer of a model and of the models inside it: the prefix of its name, its caller, the layer."""
    for layer in model.layers:
        if is_plain(layer):
            yield from walk(layer, f"{prefix}{layer.name}/")
        else:
            yield prefix, model, layer


def rebuilt(model: keras.Model, convert: Convert) -> keras.Model:
    """Returns a copy of the model, and of the models inside, with the layers and weights that `convert` returns.

    A layer that is called in several places, or by several models, is converted once.
    """
    copies: dict[int, keras.Layer] = {}
    made: list[tuple[keras.Layer, keras.Layer, Weights]] = []

    def copy(layer):
        if id(layer) not in copies:
            copies[id(layer)] = new_copy(layer)
        return copies[id(layer)]

    def new_copy(layer):
        if isinstance(layer, keras.Layer) and is_plain(layer):
            return _copied_graph(layer, copy)
        # Share layers whose state is not in their config and is never trained: what `adapt` learned, a Lambda's code.
        if not isinstance(layer, keras.Layer) or hasattr(layer, "adapt") or isinstance(layer, keras.layers.Lambda):
            return layer
        converted, weights = convert(layer)
        made.append((layer, converted, weights))
        return converted

    result = copy(model)
    for original, layer, weights in made:
        _set_weights(layer, weights)
        for own, theirs in zip(layer.weights, original.weights, strict=True):
            own.trainable = theirs.trainable  # the config does not say what is frozen inside a layer
    return result


def copied(layer: keras.Layer, config: Callable[[], dict[str, Any]]) -> keras.Layer:
    """Returns a layer of the same class from a config.

    Raises:
        ValueError: The layer has no config, or none that it can be made from.
    """
    return _attempt(layer, lambda: type(layer).from_config(config()))


def _attempt(layer, step):
    """Returns the result of a step in copying a layer; its error names the layer."""
    try:
        return step()
    except Exception as error:  # whatever the layer's own code raises
        raise ValueError(
            f"The layer {layer.name!r} ({type(layer).__name__}) cannot be copied from its config: {error} Give it a "
            "get_config and a from_config that rebuild it, and register its class."
        ) from error


def as_rms_normalization(layer: keras.layers.LayerNormalization) -> RMSNormalization:
    """Returns an RMSNormalization with the options of a LayerNormalization, ready for its weights."""
    axis = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    return RMSNormalization(
        axis=axis[0] if len(axis) == 1 else tuple(axis),
        epsilon=layer.epsilon,
        scale=layer.gamma is not None,
        center=layer.beta is not None,
        scale_initializer=layer.gamma_initializer,
        offset_initializer=layer.beta_initializer,
        scale_regularizer=layer.gamma_regularizer,
        offset_regularizer=layer.beta_regularizer,
        scale_constraint=layer.gamma_constraint,
        offset_constraint=layer.beta_constraint,
        activity_regularizer=layer.activity_regularizer,
        name=layer.name,
        dtype=layer.dtype_policy,
        trainable=layer.trainable,
    )


def centred(weight: np.ndarray, axis: int) -> np.ndarray:
    """Returns the weight minus its mean over `axis`."""
    wide = weight.astype(np.float64)
    return (wide - wide.mean(axis, keepdims=True)).astype(weight.dtype)


def _copied_graph(model, copy):
    if isinstance(model, keras.Sequential):
        [x] = _inputs_like(keras.Model(model.inputs, model.outputs))
        return keras.Sequential([x, *map(copy, model.layers)], name=model.name)
    # clone_model would compile the copy of a compiled model.
    plain = keras.Model(model.input, model.output, name=model.name)
    return keras.models.clone_model(plain, input_tensors=_inputs_like(plain), clone_function=copy)


def _inputs_like(model):
    """Returns new inputs in the structure of a functional model's, optional or sparse where those are."""
    inputs = [layer for layer in model.layers if isinstance(layer, keras.layers.InputLayer)]
    made = {id(layer.output): keras.layers.InputLayer.from_config(layer.get_config()).output for layer in inputs}
    return keras.tree.map_structure(lambda x: made[id(x)], model.input)


def _set_weights(layer, weights):
    if isinstance(layer, RMSNormalization):
        # For axis=(-1, 1) a LayerNormalization stores its gain in that order, and reads it in the order of the axes.
        weights = [np.reshape(w, own.shape) for w, own in zip(weights, layer.weights, strict=True)]
    if [w.shape for w in weights] != [tuple(own.shape) for own in layer.weights]:
        raise ValueError(
            f"The copy that the config of {layer.name!r} ({type(layer).__name__}) makes has other weights than the "
            "layer: it may be quantized, or have LoRA weights, inside. Convert the model before doing that to it."
        )
    layer.set_weights(weights)
