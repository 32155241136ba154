"""A copy of a functional model with the same weights."""

import inspect
from typing import Any

import keras

from rmsnorm_tf.conversion.model.layers import functional_class, is_plain, walk


def copy_of(model: keras.Model) -> keras.Model:
    """Returns a copy of a model with an input. A layer that is called in several places is copied once.

    Raises:
        TypeError: The model is subclassed, so its calls are unknown.
        ValueError: The model has no input yet; a layer cannot be copied from its config, or not with all its weights;
            or two layers share a weight, which one of them may read in the code of a Lambda.
    """
    check_copyable(model)
    copies: dict[int, Any] = {}
    made: list[tuple[keras.Layer, keras.Layer]] = []

    def copy(layer):
        if id(layer) not in copies:
            copies[id(layer)] = new_copy(layer)
        return copies[id(layer)]

    def new_copy(layer):
        if is_plain(layer):
            return _copied_graph(layer, copy)
        # Share layers whose state is not in their config and is never trained: what `adapt` learned, a Lambda's code.
        if not isinstance(layer, keras.Layer) or hasattr(layer, "adapt") or isinstance(layer, keras.layers.Lambda):
            return layer
        made.append((layer, _attempt(layer, lambda: type(layer).from_config(layer.get_config()))))
        made[-1][1].name = layer.name  # a config that Keras derives from the arguments may lack it
        return made[-1][1]

    result = copy(model)
    for original, layer in made:
        _copy_weights(original, layer)
        if getattr(original, "preprocessor", None) is not None:  # a tokenizer's vocabulary is not in its config
            layer.preprocessor = original.preprocessor
    return result


def why_shared(model: keras.Model) -> dict[int, str]:
    """Returns, for the layers of a model and their weights by id, why a copy that shares them must not change them."""
    return {
        id(part): f"{layer.name} is shared with the given model"
        for _, _, layer in walk(model)
        for part in (layer, *layer.weights)
    }


def check_copyable(model: Any) -> None:
    """Raises an error unless the model can be copied with all its weights, as far as can be seen beforehand."""
    if not isinstance(model, (keras.Sequential, functional_class())):
        raise TypeError(
            f"Only sequential and functional models show which layer calls which, got a {type(model).__name__}. Make "
            "it functional: keras.Model(inputs, outputs) of its layers called on keras.Input."
        )
    if not model.built:
        raise ValueError(f"The model {model.name!r} has no input yet. Give it a keras.Input as its first layer.")
    owners: dict[int, keras.Layer] = {}
    for layer in _copied_alone(model):
        for weight in layer.weights:
            owner = owners.setdefault(id(weight), layer)
            if owner is not layer:
                raise ValueError(
                    f"The layers {owner.name!r} and {layer.name!r} share the weight {weight.path!r}, but their copies "
                    "would not. Convert a model that ends before the second one, or give that one a weight of its own."
                )
    for layer in _copied_alone(model):
        for weight in _weights_in_code(layer):
            if owner := owners.get(id(weight)):
                raise ValueError(
                    f"The code of {layer.name!r} reads the weight {weight.path!r} of {owner.name!r}, and in a copy it "
                    "would still read that of the given model. Call the other layer instead, or convert a model that "
                    "ends before this one."
                )
        _attempt(layer, layer.get_config)


def _copied_alone(model):
    """Yields the layers that are copied from their own configs."""
    if not is_plain(model):
        yield model
        return
    for layer in model.layers:
        yield from _copied_alone(layer)


def _weights_in_code(layer):
    """Yields the weights that the function of a Lambda layer finds outside its arguments."""
    if not inspect.isfunction(getattr(layer, "function", None)):
        return
    found = inspect.getclosurevars(layer.function)
    for value in (*found.nonlocals.values(), *found.globals.values()):
        if isinstance(value, keras.Variable):
            yield value
        elif isinstance(value, keras.Layer):
            yield from value.weights


def _attempt(layer, step):
    """Returns the result of a step in copying a layer; its error names the layer."""
    try:
        return step()
    except Exception as error:  # whatever the layer's own code raises
        raise ValueError(
            f"The layer {layer.name!r} ({type(layer).__name__}) cannot be copied from its config: "
            f"{str(error).rstrip('.')}. Give it a get_config and a from_config that rebuild it, and register its class."
        ) from error


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
    made = {id(layer.output): _input_like(layer) for layer in inputs}
    return keras.tree.map_structure(lambda x: made[id(x)], model.input)


def _input_like(layer):
    config = {**layer.get_config(), "optional": layer.optional}  # Keras 3.12 leaves `optional` out
    return keras.layers.InputLayer.from_config(config).output


def _copy_weights(original, layer):
    if [own.shape for own in layer.weights] != [theirs.shape for theirs in original.weights]:
        raise ValueError(
            f"The copy that the config of {layer.name!r} ({type(layer).__name__}) makes has other weights than the "
            "layer: it may be quantized, or have LoRA weights, inside. Convert the model before you add either."
        )
    layer.set_weights(original.get_weights())
    # The config does not say how the layers inside are called and which are frozen.
    inside = {path: (inner.name, inner.trainable) for path, _, inner in walk(original)}
    trainable = [weight.trainable for weight in original.weights]
    for path, _, own in walk(layer):
        if path in inside:
            own.name, own.trainable = inside[path]
    for own, theirs in zip(layer.weights, trainable, strict=True):
        own.trainable = theirs
