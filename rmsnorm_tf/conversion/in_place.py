"""Changes layers in place: a norm becomes an RMSNormalization, an output loses its mean.

The changed layer stays the same object, so every model, list and attribute that refers to it goes along.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import keras

from rmsnorm_tf.norm.layer import RMSNormalization


def counterpart(layer: keras.layers.LayerNormalization) -> RMSNormalization:
    """Returns an RMSNormalization with the options of a LayerNormalization."""
    axis = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    return RMSNormalization(
        axis=axis[0] if len(axis) == 1 else tuple(axis),
        epsilon=layer.epsilon,
        scale=layer.scale,
        center=layer.center,
        scale_initializer=layer.gamma_initializer,
        offset_initializer=layer.beta_initializer,
        scale_regularizer=layer.gamma_regularizer,
        offset_regularizer=layer.beta_regularizer,
        scale_constraint=layer.gamma_constraint,
        offset_constraint=layer.beta_constraint,
        supports_masking=layer.supports_masking,
        name=layer.name,
    )


def become(layer: keras.Layer, like: RMSNormalization) -> None:
    """Turns a built norm into an RMSNormalization, which takes over its weights: a gain, an offset, or both.

    Args:
        layer: The norm.
        like: An RMSNormalization with the options to take over. Without a scale, the norm's gain is dropped.
    """
    weights = list(layer.weights)
    if len(weights) > like.use_scale + like.center:
        _drop(layer, weights.pop(0))
    layer.__class__ = RMSNormalization
    own_of_every_layer = vars(keras.layers.Identity(name=like.name))
    for name, value in vars(like).items():
        if name not in own_of_every_layer:
            setattr(layer, name, value)
    layer.autocast = False
    layer.supports_masking = like.supports_masking
    layer.scale = weights.pop(0) if like.use_scale else None
    layer.offset = weights.pop(0) if like.center else None


def subtract_mean_of_output(layer: keras.Layer) -> None:
    """Makes a layer subtract the mean over the last axis from its output, unless the output is logits."""
    layer.call = _centred(layer.call)
    layer.quantized_call = _centred(layer.quantized_call)


def is_reverse(function: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a call of a layer's function asks a reversible embedding for logits."""
    if "reverse" not in inspect.signature(function).parameters:
        return False
    return bool(inspect.signature(function).bind(*args, **kwargs).arguments.get("reverse"))


def _drop(layer, weight):
    first, *others = [name for name, value in vars(layer).items() if value is weight]
    delattr(layer, first)
    for name in others:
        setattr(layer, name, None)


def _centred(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        y = function(*args, **kwargs)
        if is_reverse(function, args, kwargs):
            return y
        wide = keras.ops.cast(y, keras.backend.result_type(y.dtype, "float32"))
        centred = keras.ops.cast(wide - keras.ops.mean(wide, -1, keepdims=True), y.dtype)
        if (mask := getattr(y, "_keras_mask", None)) is not None:
            centred._keras_mask = mask
        return centred

    return call
