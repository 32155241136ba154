"""Networks that classify images, and loss and error of classifiers."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from .experiment import Networks
from .feeding import in_batches
from .trial import Setting


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


class ImageClassifiers(Networks):
    """Networks that classify images.

    Args:
        data: The data, with the parts `train`, `valid` and `test` of images and classes.
        validated: Images in a batch of a validation.
    """

    def __init__(self, data: Any, validated: int):
        self.data, self._validated = data, validated
        self.examples = len(data.train.classes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        return self.data.train.images[numbers], self.data.train.classes[numbers]

    def validate(self, model: keras.Model) -> dict[str, float]:
        """Returns loss and error, on the validation images and on the test images."""
        return loss_and_error(model, {"": self.data.valid, "test_": self.data.test}, self._validated)
