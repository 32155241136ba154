"""What a training asks of the networks of a task, and what all classifiers share."""

import abc
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from .run import Run, Setting


class Networks(abc.ABC):
    """The networks of a task, with its data.

    Args:
        data: The data, with the parts `train`, `valid` and `test`, which is `None` if nothing is
            tested.
        *sizes: Sizes of the networks, for `build`; by default those of the task.
    """

    def __init__(self, data: Any, *sizes: Any):
        self.data = data
        self.sizes = sizes

    @property
    def examples(self) -> int:
        """The number of training examples."""
        part = self.data.train
        return len(part if isinstance(part, np.ndarray) else part[0])

    @abc.abstractmethod
    def build(self, run: Run) -> keras.Model:
        """Builds and compiles the network of a run.

        Its seed alone decides the initial weights.
        """

    @abc.abstractmethod
    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[Any, Any]:
        """Returns inputs and targets of training examples with these numbers.

        They are as a setting has them.
        """

    @abc.abstractmethod
    def measure(self, model: keras.Model, part: Any) -> dict[str, float]:
        """Returns the values of a validation, on a part of the data."""

    @abc.abstractmethod
    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the share of the mean in the input of each norm, on validation data.

        See `probes.mean_share`.
        """

    def results(self) -> dict[str, Any]:
        """Returns what else every log keeps, in JSON types."""
        return {}

    def validate(self, model: keras.Model) -> dict[str, float]:
        """Returns the values on the validation data and on the test data.

        The names of the latter begin with `test_`.
        """
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


def loss_and_error(
    model: keras.Model, inputs: Any, classes: np.ndarray, batch_size: int
) -> dict[str, float]:
    """Returns the mean loss, `nll`, and the `error` of a classifier in percent.

    `compile_classifier` compiled it.
    """
    loss, accuracy = model.evaluate(in_batches(inputs, classes, batch_size=batch_size), verbose=0)
    return {"nll": loss, "error": 100 * (1 - accuracy)}


class ImageClassifiers(Networks):
    """Networks that classify images. The parts of their data have `images` and `classes`."""

    validated: int  # images in a batch of a validation

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        return self.data.train.images[numbers], self.data.train.classes[numbers]

    def measure(self, model: keras.Model, part: Any) -> dict[str, float]:
        return loss_and_error(model, part.images, part.classes, self.validated)


def in_batches(inputs: Any, targets: Any = None, *, batch_size: int) -> Iterable:
    """Returns a dataset of the batches of some examples, in order.

    It is for `fit`, `evaluate` and `predict`. Given arrays, Keras builds a dataset whose autotuning
    thread sleeps for 10 ms, 20 ms, 40 ms and so on, and the end of the dataset waits for it: a call
    of 3 s takes 5 s. So autotuning is off here.

    Args:
        inputs: `[examples, ...]`, or a list of such arrays.
        targets: `[examples, ...]`; `None` for predictions.
        batch_size: Examples in a batch; the last batch holds the rest.
    """
    import tensorflow as tf  # not at the top, so that models run on other backends

    inputs = tuple(inputs) if isinstance(inputs, list) else inputs
    parts = (inputs,) if targets is None else (inputs, targets)
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.from_tensor_slices(parts).batch(batch_size).with_options(options)
