"""ConvPool-CNN-C on CIFAR-10 with every kind of normalization: the task `cifar10`."""

import keras

from ..data_sets.arrays import Parts
from ..trials.experiment import Experiment, conduct
from ..trials.networks import ImageClassifiers
from ..trials.probes import mean_share
from ..trials.trial import Setting, Trial, rows_of
from . import rows
from .data import read_cifar10
from .model import SUMS, WIDTHS, build_model
from .rows import SPACE
from .section import LEARNING, PUBLISHED_TIMES

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


class Classifiers(ImageClassifiers):
    """The networks of the task, with the data and their sizes."""

    def __init__(self, cifar10: Parts, widths: tuple[int, int] = WIDTHS):
        super().__init__(cifar10, validated=500)
        self._widths = widths

    def build(self, trial: Trial) -> keras.Model:
        pixels = self.data.train.images.shape[1]
        return build_model(trial.row, trial.step_size, trial.seed, trial.setting.updates, self._widths, pixels)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, self.data.valid.images[:_PROBED], SPACE)


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is an .npz file or a folder with one; an empty string downloads it."""
    conduct(EXPERIMENT, lambda: Classifiers(read_cifar10(data)), so_far)
