"""Changes layers in place: turns norms into RMSNormalizations and subtracts means of outputs.

The changed layer stays the same object, so every model, list and attribute that refers to it goes
along.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from rmsnorm_tf.conversion.model.layers import is_reverse
from rmsnorm_tf.norm.layer import RMSNormalization
from rmsnorm_tf.recurrent.cells import RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell


def axes_of(norm: keras.Layer) -> list[int]:
    """Returns the axes of a norm of Keras as its argument named them."""
    return list(norm.axis) if isinstance(norm.axis, (list, tuple)) else [norm.axis]


def counterpart(layer: keras.layers.LayerNormalization) -> RMSNormalization:
    """Returns an RMSNormalization with the options of a LayerNormalization."""
    axes = axes_of(layer)
    return RMSNormalization(
        axis=axes[0] if len(axes) == 1 else axes,
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


def shape_of_input(layer: keras.Layer, axis: int | tuple[int, ...] = -1) -> tuple[int | None, ...]:
    """Returns the shape of the input of a built norm over `axis`.

    A gain over the last axis says its size, because another layer may have built the norm for
    another input, as KerasHub's Qwen3 builds its norms of queries and keys.
    """
    shape = tuple(layer.get_build_config()["input_shape"])
    if axis == -1 and layer.weights:
        return (*shape[:-1], layer.weights[0].shape[-1])
    return shape


def turn_into_rms_norm(layer: keras.Layer, like: RMSNormalization) -> None:
    """Turns a built norm into an RMSNormalization with the options of another, in float32 or wider.

    The norm's weights are a gain, an offset, or both in this order.
    """
    shape = shape_of_input(layer, like.axis)
    weights = list(layer.weights)
    kept = [(weight.numpy(), weight.trainable) for weight in weights]
    for weight in weights:
        _forget(layer, weight)
    layer.__class__ = RMSNormalization
    own_of_every_layer = vars(keras.layers.Identity(name=like.name))
    for name, value in vars(like).items():
        if name not in own_of_every_layer:
            setattr(layer, name, value)
    layer.autocast = False
    layer.supports_masking = like.supports_masking
    # A built layer accepts no weights. The old ones may be narrower than float32, in which a norm
    # adds 1 to its scale.
    layer._tracker.unlock()
    RMSNormalization.build(layer, shape)
    layer._tracker.lock()
    for weight, (value, trainable) in zip(layer.weights, kept, strict=True):
        weight.assign(value)
        weight.trainable = trainable


def is_cell_with_layer_norm(layer: keras.Layer) -> bool:
    """Returns whether a layer is one of our cells with LayerNorm inside."""
    return (
        type(layer) in (RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell)
        and layer.normalization == "layer"
    )


def norms_of_cell(cell: Any) -> list[keras.Layer]:
    """Returns the norms of one of our cells."""
    return [getattr(cell, name) for name in cell.norm_sizes]


def centre_kernels(cell: Any) -> None:
    """Centres the kernels of a cell, block by block."""
    bias = [cell.bias] if cell.normalize_bias and cell.use_bias else []
    for weight in (cell.kernel, cell.recurrent_kernel, *bias):
        ends = np.cumsum(cell.kernel_blocks)[:-1] * cell.units
        blocks = np.split(keras.ops.convert_to_numpy(weight), ends, axis=-1)
        weight.assign(np.concatenate([centred(block, -1) for block in blocks], -1))


def centred(weight: np.ndarray, axis: int) -> np.ndarray:
    """Returns the weight minus its mean over `axis`."""
    wide = weight.astype(np.float64)
    return (wide - wide.mean(axis, keepdims=True)).astype(weight.dtype)


def _forget(layer, weight):
    """Removes a weight from a layer, without the garbage collection of `Layer.__delattr__`."""
    layer._tracker.untrack(weight)
    for name in [name for name, value in vars(layer).items() if value is weight]:
        super(keras.layers.Layer, layer).__delattr__(name)


def without_mean(layer: keras.Layer, name: str) -> Callable:
    """Returns a function of a layer that subtracts the mean of its output, unless it is logits."""

    @functools.wraps(getattr(layer, name))
    def call(*args, **kwargs):
        # Looked up here, because a norm may have become another one meanwhile.
        function = getattr(type(layer), name).__get__(layer)
        y = function(*args, **kwargs)
        if is_reverse(function, args, kwargs):
            return y
        wide = keras.ops.cast(y, keras.backend.result_type(y.dtype, "float32"))
        centred = keras.ops.cast(wide - keras.ops.mean(wide, -1, keepdims=True), y.dtype)
        mask = getattr(y, "_keras_mask", None)
        if mask is not None:
            centred._keras_mask = mask
        return centred

    return call
