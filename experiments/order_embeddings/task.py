"""Order embeddings of images and captions with every kind of normalization: the task `order_embeddings`."""

import keras
import numpy as np

from ..data_sets.arrays import Parts
from ..trials.experiment import Experiment, conduct
from ..trials.feeding import in_batches
from ..trials.networks import Networks
from ..trials.probes import gru_shares
from ..trials.trial import Setting, Trial, rows_of
from . import rows
from .data import CAPTIONS, Part, read_corpus
from .model import UNITS, WORD_UNITS, build_model
from .retrieval import retrieval_scores
from .section import LEARNING, PUBLISHED_TIMES, STAND_IN

EXPERIMENT = Experiment(
    name="order_embeddings",
    title="Order embeddings of images and captions",
    about=[STAND_IN],
    rows=rows_of(rows),
    settings=(Setting("batch-128", "batches of 128", batch_size=128, updates=1500, window=50, validate_every=150),),
    step_size=1e-3,
    metric="missed",
    metric_label="missed captions and images, %",
    learning=LEARNING,
    published_times=PUBLISHED_TIMES,
)
_PROBED = 200  # validation captions whose activations are measured


class Embeddings(Networks):
    """The networks of the task, with the data and their sizes."""

    def __init__(self, corpus: Parts, units: int = UNITS, word_units: int = WORD_UNITS):
        super().__init__(corpus, corpus.train.images.shape[0] * len(CAPTIONS))
        self._sizes = units, word_units

    def build(self, trial: Trial) -> keras.Model:
        features = self.data.train.images.shape[1]
        return build_model(trial.row, trial.step_size, trial.seed, features, *self._sizes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        """Returns images with captions, and targets that the loss does not read."""
        return _pairs(self.data.train, numbers), np.zeros(len(numbers), np.float32)

    def measure(self, model: keras.Model, part: Part) -> dict[str, float]:
        """Returns the retrieval scores."""
        pairs = _pairs(part, np.arange(part.images.shape[0] * len(CAPTIONS)))
        found = model.predict(in_batches(pairs, batch_size=512), verbose=0)  # [pairs, 2, units]
        return retrieval_scores(found[:: len(CAPTIONS), 0], found[:, 1].reshape(-1, len(CAPTIONS), found.shape[-1]))

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        captions = self.data.valid.captions[:_PROBED, 0]
        return gru_shares(model.get_layer("gru").cell, model.get_layer("words")(captions), captions != 0)


def _pairs(part: Part, numbers: np.ndarray) -> list[np.ndarray]:
    """Returns the images and the captions of some pairs."""
    images, captions = np.divmod(numbers, len(CAPTIONS))
    return [part.images[images].toarray(), part.captions[images, captions]]


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is a folder with five captions of each image; see `read_corpus`."""
    conduct(EXPERIMENT, lambda: Embeddings(read_corpus(data)), so_far)
