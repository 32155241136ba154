"""What a training asks of the networks of a task, with what all classifiers and all tasks on images share."""

import abc
from typing import Any

import keras
import numpy as np

from .feeding import in_batches
from .trial import Setting, Trial


class Networks(abc.ABC):
    """The networks of a task, with its data.

    Args:
        data: The data, with the parts `train`, `valid` and `test`, which is `None` if nothing is tested.
        examples: Number of training examples.
    """

    def __init__(self, data: Any, examples: int):
        self.data, self.examples = data, examples

    @abc.abstractmethod
    def build(self, trial: Trial) -> keras.Model:
        """Builds and compiles the network of a trial, whose seed alone decides the initial weights."""

    @abc.abstractmethod
    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[Any, Any]:
        """Returns inputs and targets of training examples with these numbers, as a setting has them."""

    @abc.abstractmethod
    def measure(self, model: keras.Model, part: Any) -> dict[str, float]:
        """Returns the values of a validation, on a part of the data."""

    @abc.abstractmethod
    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the share of the mean in the input of each norm, on validation data; see `probes.mean_share`."""

    def results(self) -> dict[str, Any]:
        """Returns what else every log keeps, in JSON types."""
        return {}

    def validate(self, model: keras.Model) -> dict[str, float]:
        """Returns the values on the validation data, and those on the test data with `test_` before their names."""
        found = self.measure(model, self.data.valid)
        tested = {} if self.data.test is None else self.measure(model, self.data.test)
        return found | {f"test_{name}": value for name, value in tested.items()}


def compile_classifier(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, jit_compile: bool = True
) -> keras.Model:
    """Compiles a network that maps inputs to the logits of classes, and returns it."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"], jit_compile=jit_compile)
    return model


def loss_and_error(model: keras.Model, inputs: Any, classes: np.ndarray, batch_size: int) -> dict[str, float]:
    """Returns the mean loss, `nll`, and the `error` in percent of a network that `compile_classifier` compiled."""
    loss, accuracy = model.evaluate(in_batches(inputs, classes, batch_size=batch_size), verbose=0)
    return {"nll": loss, "error": 100 * (1 - accuracy)}


class ImageClassifiers(Networks):
    """Networks that classify images.

    Args:
        data: The data, whose parts have `images` and `classes`.
        validated: Images in a batch of a validation.
    """

    def __init__(self, data: Any, validated: int):
        super().__init__(data, len(data.train.classes))
        self._validated = validated

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        return self.data.train.images[numbers], self.data.train.classes[numbers]

    def measure(self, model: keras.Model, part: Any) -> dict[str, float]:
        return loss_and_error(model, part.images, part.classes, self._validated)
