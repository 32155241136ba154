"""Permutation-invariant MNIST with every kind of normalization: the task `mnist`."""

import keras

from ..data_sets.arrays import Parts
from ..data_sets.mnist import read_mnist
from ..trials.experiment import Experiment, conduct
from ..trials.networks import ImageClassifiers
from ..trials.probes import mean_share
from ..trials.trial import Setting, Trial, rows_of
from . import rows
from .model import HIDDEN, SUMS, build_model
from .section import LEARNING

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


class Classifiers(ImageClassifiers):
    """The networks of the task, with the data and their sizes."""

    def __init__(self, mnist: Parts, hidden: int = HIDDEN):
        super().__init__(mnist, validated=1000)
        self._hidden = hidden

    def build(self, trial: Trial) -> keras.Model:
        pixels = self.data.train.images.shape[-1]
        return build_model(trial.row, trial.step_size, trial.seed, self._hidden, pixels)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, self.data.valid.images)


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is the folder of the four MNIST files; an empty string downloads them."""
    conduct(EXPERIMENT, lambda: Classifiers(read_mnist(data)), so_far)
