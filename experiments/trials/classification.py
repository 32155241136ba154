"""Loss and error of classifiers."""

from collections.abc import Mapping
from typing import Any

import keras

from .feeding import in_batches


def loss_and_error(model: keras.Model, parts: Mapping[str, tuple[Any, Any]], batch_size: int) -> dict[str, float]:
    """Returns the mean loss and the error in percent on some parts of the data.

    Args:
        model: A classifier, compiled with `accuracy` as its only metric.
        parts: Inputs and classes by the prefix of the keys of their values: `nll` and `error`.
        batch_size: Examples in a batch.
    """
    found = {}
    for prefix, (inputs, classes) in parts.items():
        loss, accuracy = model.evaluate(in_batches(inputs, classes, batch_size=batch_size), verbose=0)
        found |= {f"{prefix}nll": loss, f"{prefix}error": 100 * (1 - accuracy)}
    return found
