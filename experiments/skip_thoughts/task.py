"""Skip-thoughts with every kind of normalization: the task `skip_thoughts`."""

import keras
import numpy as np

from ..data_sets.arrays import Parts
from ..trials.experiment import Experiment, conduct
from ..trials.feeding import in_batches
from ..trials.networks import Networks
from ..trials.probes import gru_shares
from ..trials.trial import Setting, Trial, rows_of
from . import rows
from .data import PADDING, Part, read_corpus
from .model import Sizes, build_model
from .section import LEARNING, STAND_IN

EXPERIMENT = Experiment(
    name="skip_thoughts",
    title="Skip-thoughts",
    about=[STAND_IN],
    rows=rows_of(rows),
    settings=(Setting("batch-32", "batches of 32", batch_size=32, updates=1500, window=50, validate_every=150),),
    step_size=1e-3,
    metric="nats",
    metric_label="validation loss in nats a word",
    learning=LEARNING,
    share_over="the units, in the GRU that reads",
)
_PROBED = 64  # validation sentences whose activations are measured
_VALIDATED = 1024  # sentences of a validation


class SkipThoughts(Networks):
    """The networks of the task, with the data and their sizes."""

    def __init__(self, corpus: Parts, sizes: Sizes | None = None):
        super().__init__(corpus, len(corpus.train.middles))
        self._sizes = sizes or Sizes()

    def build(self, trial: Trial) -> keras.Model:
        return build_model(trial.row, trial.step_size, trial.seed, self._sizes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        """Returns sentences with their neighbours, and the neighbours."""
        return _triples(self.data.train, numbers)

    def measure(self, model: keras.Model, part: Part) -> dict[str, float]:
        """Returns the loss in nats a word, as the mean over batches."""
        triples = _triples(part, _spread_over(part, _VALIDATED))
        return {"nats": model.evaluate(in_batches(*triples, batch_size=64), verbose=0)}

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the shares in the GRU that reads sentences."""
        valid = self.data.valid
        ids = valid.ids[valid.middles[_spread_over(valid, _PROBED)]]
        return gru_shares(model.get_layer("thought").cell, model.get_layer("words")(ids), ids != PADDING)


def _spread_over(part: Part, count: int) -> np.ndarray:
    """Returns the numbers of `count` triples that are evenly spread over a part, or of all if there are fewer."""
    return np.unique(np.linspace(0, len(part.middles) - 1, count).astype(int))


def _triples(part: Part, numbers: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    middles = part.middles[numbers]
    neighbours = np.stack([part.ids[middles - 1], part.ids[middles + 1]], 1)
    return [part.ids[middles], neighbours], neighbours


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is a folder of novels; see `read_corpus`."""
    conduct(EXPERIMENT, lambda: SkipThoughts(read_corpus(data)), so_far)
