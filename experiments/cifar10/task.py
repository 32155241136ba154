"""ConvPool-CNN-C on CIFAR-10 with every kind of normalization: the task `cifar10`."""

import keras
import numpy as np

from ..trials.classification import loss_and_error
from ..trials.experiment import Experiment, Networks, conduct
from ..trials.probes import mean_share
from ..trials.trial import Setting, TrialRow, rows_of
from . import rows
from .data import Cifar10, read_cifar10
from .model import SUMS, WIDTHS, build_model
from .rows.kinds import SPACE
from .section import LEARNING, PUBLISHED_TIMES

DATA = ""  # keras.datasets downloads it
EXPERIMENT = Experiment(
    name="cifar10",
    title="CIFAR-10",
    rows=rows_of(rows),
    settings=(Setting("batch-100", "batches of 100", batch_size=100, updates=540, window=30, validate_every=90),),
    step_size=1e-3,
    metric="nll",
    metric_label="validation loss in nats",
    learning=LEARNING,
    share_over="the positions of a channel, in the rows with other axes too",
    published_times=PUBLISHED_TIMES,
)
_PROBED = 200  # validation images whose activations are measured


class Classifiers(Networks):
    """The networks of the task.

    Args:
        cifar10: The data.
        widths: Channels of the first three convolutions, and of the others.
    """

    def __init__(self, cifar10: Cifar10, widths: tuple[int, int] = WIDTHS):
        self._cifar10, self._widths = cifar10, widths
        self.examples = len(cifar10.train.classes)

    def build(self, row: TrialRow, step_size: float, seed: int, setting: Setting) -> keras.Model:
        pixels = self._cifar10.train.images.shape[1]
        return build_model(row, step_size, seed, setting.updates, self._widths, pixels)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        return self._cifar10.train.images[numbers], self._cifar10.train.classes[numbers]

    def validate(self, model: keras.Model) -> dict[str, float]:
        """Returns loss and error, on the validation images and on the test images."""
        return loss_and_error(model, {"": self._cifar10.valid, "test_": self._cifar10.test}, batch_size=500)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, self._cifar10.valid.images[:_PROBED], SPACE)


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is an .npz file or a folder with one; an empty string downloads it."""
    conduct(EXPERIMENT, lambda: Classifiers(read_cifar10(data)), so_far)
