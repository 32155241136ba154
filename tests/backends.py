"""Derivatives, compilation and arrays on the backend that Keras runs on.

A test file that neither imports TensorFlow nor folds models runs on every backend (`make
test-backends`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

BACKEND = keras.backend.backend()

# The widest dtype that all layers of Keras compute in. On JAX and PyTorch, many cast float64 down.
WIDEST = "float64" if BACKEND == "tensorflow" else "float32"


def to_array(t: Any) -> np.ndarray:
    """Returns a tensor, a variable, an array or a list as float64."""
    return np.asarray(keras.ops.convert_to_numpy(t), np.float64)


def dtype_of(t: Any) -> str:
    """Returns the name of the dtype of a tensor."""
    return keras.backend.standardize_dtype(t.dtype)


def gradients(function: Callable, sources: Sequence[Any], upstream: Any) -> list[Any]:
    """Returns the gradient of each source, given that of what a function of them returns."""
    sources = [keras.ops.convert_to_tensor(source) for source in sources]
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = function(*sources)
        return tape.gradient(y, sources, upstream)
    if BACKEND == "jax":
        import jax

        y, backward = jax.vjp(function, *sources)
        return list(
            backward(
                keras.tree.map_structure(lambda dy, y: keras.ops.cast(dy, y.dtype), upstream, y)
            )
        )
    import torch

    sources = [
        source if source.requires_grad else source.clone().requires_grad_() for source in sources
    ]
    y = function(*sources)
    upstream = keras.tree.map_structure(lambda dy, y: keras.ops.cast(dy, y.dtype), upstream, y)
    return list(torch.autograd.grad(y, sources, upstream, create_graph=True))


def gradients_of_layer(layer: keras.layers.Layer, x: Any, upstream: Any) -> list[Any]:
    """Returns the gradients of the input and of the trainable weights of a built layer."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            x = tf.convert_to_tensor(x)
            tape.watch(x)
            y = layer(x)
        return tape.gradient(y, [x, *layer.trainable_weights], tf.cast(upstream, y.dtype))
    if BACKEND == "jax":
        model = keras.Sequential(
            [keras.Input(x.shape[1:]), layer]
        )  # a recurrent layer alone ignores its dtype policy
        others = [variable.value for variable in model.non_trainable_variables]
        sources = [x, *(variable.value for variable in model.trainable_variables)]
        return gradients(lambda x, *own: model.stateless_call(own, others, x)[0], sources, upstream)
    import torch

    x = keras.ops.convert_to_tensor(x).clone().requires_grad_()
    weights = [weight.value for weight in layer.trainable_weights]
    y = layer(x)
    return list(torch.autograd.grad(y, [x, *weights], keras.ops.cast(upstream, y.dtype)))


def compiled(layer: Callable) -> Callable:
    """Returns the layer as a compiled function of one input; its weights are constants."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(layer, jit_compile=True, autograph=False)
    if BACKEND == "jax":
        import jax

        return jax.jit(layer)
    import torch

    return torch.compile(layer, backend="eager")
