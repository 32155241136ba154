"""Measures a trained model: the share of the mean square that centring removes, and the size of the gains."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np


def mean_share(model: keras.Model, layers: Sequence[str], inputs: Any) -> dict[str, float]:
    """Returns the share of the mean in the mean square of some layers' outputs, `E[mean(a)**2] / E[mean(a**2)]`.

    Mean and mean square are over the last axis. The share is the part of the mean square that LayerNorm's centring
    removes: 0 if the mean is 0, 1 if all entries are equal.

    Args:
        model: A functional model.
        layers: Names of layers, for example of those before the norms.
        inputs: Inputs of the model.
    """
    probe = keras.Model(model.input, [model.get_layer(name).output for name in layers])
    outputs = [np.asarray(each, np.float64) for each in keras.tree.flatten(probe(inputs, training=False))]
    return {name: float(np.mean(a.mean(-1) ** 2) / np.mean(a**2)) for name, a in zip(layers, outputs, strict=True)}


def gain_rms(model: keras.Model) -> dict[str, float]:
    """Returns the root mean square of every gain, by the name of its layer."""
    weights = [(weight.path.split("/")[-2], weight) for weight in model.trainable_weights]
    gains = [(layer, weight) for layer, weight in weights if weight.name in ("scale", "gamma")]
    return {layer: float(np.sqrt(np.mean(np.square(weight.numpy())))) for layer, weight in gains}
