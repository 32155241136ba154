"""Shared by the tests of models and blocks: random numbers, LayerNorm in NumPy, a comparison of
gradients.
"""

import numpy as np
import tensorflow as tf

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def fill(layer):
    """Sets every weight to random numbers and returns them by name."""
    for weight in layer.weights:
        weight.assign(normal(*weight.shape))
    return {weight.path.partition("/")[2]: weight.numpy() for weight in layer.weights}


def layer_norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def assert_same_gradients(tape, first, second, model, rtol=1e-4, atol=1e-5):
    gradients = [tape.gradient(each, model.trainable_variables) for each in (first, second)]
    for weight, *both in zip(model.trainable_variables, *gradients, strict=True):
        np.testing.assert_allclose(
            *map(tf.convert_to_tensor, both), rtol=rtol, atol=atol, err_msg=weight.path
        )
