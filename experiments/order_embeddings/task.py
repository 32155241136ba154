"""Order embeddings of images and captions with every kind of normalization: the task `order_embeddings`."""

import keras
import numpy as np

from nmt.errors import UserError

from ..data_sets.arrays import Parts
from ..trials.experiment import Experiment, Networks, conduct
from ..trials.feeding import in_batches
from ..trials.probes import gru_shares
from ..trials.trial import Setting, TrialRow, rows_of
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
        self._corpus, self._units, self._word_units = corpus, units, word_units
        self.examples = corpus.train.images.shape[0] * len(CAPTIONS)

    def build(self, row: TrialRow, step_size: float, seed: int, setting: Setting) -> keras.Model:
        features = self._corpus.train.images.shape[1]
        return build_model(row, step_size, seed, features, self._units, self._word_units)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        """Returns images with captions, and targets that the loss does not read."""
        return _pairs(self._corpus.train, numbers), np.zeros(len(numbers), np.float32)

    def validate(self, model: keras.Model) -> dict[str, float]:
        """Returns the retrieval scores on the validation images and on the test images."""
        test = _scores(model, self._corpus.test)
        return _scores(model, self._corpus.valid) | {f"test_{name}": value for name, value in test.items()}

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        captions = self._corpus.valid.captions[:_PROBED, 0]
        return gru_shares(model.get_layer("gru").cell, model.get_layer("words")(captions), captions != 0)


def _pairs(part: Part, numbers: np.ndarray) -> list[np.ndarray]:
    """Returns the images and the captions of some pairs."""
    images, captions = np.divmod(numbers, len(CAPTIONS))
    return [part.images[images].toarray(), part.captions[images, captions]]


def _scores(model: keras.Model, part: Part) -> dict[str, float]:
    pairs = _pairs(part, np.arange(part.images.shape[0] * len(CAPTIONS)))
    found = model.predict(in_batches(pairs, batch_size=512), verbose=0)  # [pairs, 2, units]
    return retrieval_scores(found[:: len(CAPTIONS), 0], found[:, 1].reshape(-1, len(CAPTIONS), found.shape[-1]))


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is a folder with five captions of each image; see `read_corpus`."""
    if not (data or so_far):
        raise UserError("give the folder of the captions, task 2 of Multi30k: DATA=/path/to/captions")
    conduct(EXPERIMENT, lambda: Embeddings(read_corpus(data)), so_far)
