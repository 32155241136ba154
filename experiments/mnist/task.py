"""Permutation-invariant MNIST with every kind of normalization: the task `mnist`."""

import keras
import numpy as np

from ..data_sets.mnist import Mnist, read_mnist
from ..trials.classification import loss_and_error
from ..trials.experiment import Experiment, Networks, conduct
from ..trials.probes import mean_share
from ..trials.trial import Setting, TrialRow, rows_of
from . import rows
from .model import HIDDEN, SUMS, build_model
from .section import LEARNING

DATA = ""  # keras.datasets downloads it
EXPERIMENT = Experiment(
    name="mnist",
    title="Permutation-invariant MNIST",
    rows=rows_of(rows),
    settings=(
        Setting("batch-128", "batches of 128", batch_size=128, updates=4300, window=86, validate_every=430),
        Setting("batch-4", "batches of 4", batch_size=4, updates=6000, window=200, validate_every=1000),
    ),
    step_size=1e-3,
    metric="nll",
    metric_label="validation loss in nats",
    learning=LEARNING,
    share_over="the units of a hidden layer",
)


class Classifiers(Networks):
    """The networks of the task.

    Args:
        mnist: The data.
        hidden: Units of a hidden layer.
    """

    def __init__(self, mnist: Mnist, hidden: int = HIDDEN):
        self._mnist, self._hidden = mnist, hidden
        self.examples = len(mnist.train.classes)

    def build(self, row: TrialRow, step_size: float, seed: int, setting: Setting) -> keras.Model:
        return build_model(row, step_size, seed, self._hidden, pixels=self._mnist.train.images.shape[-1])

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        return self._mnist.train.images[numbers], self._mnist.train.classes[numbers]

    def validate(self, model: keras.Model) -> dict[str, float]:
        """Returns loss and error, on the validation images and on the test images."""
        return loss_and_error(model, {"": self._mnist.valid, "test_": self._mnist.test}, batch_size=1000)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, self._mnist.valid.images)


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is the folder of the four MNIST files; an empty string downloads them."""
    conduct(EXPERIMENT, lambda: Classifiers(read_mnist(data)), so_far)
