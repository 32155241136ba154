"""An attentive reader with every kind of normalization: the task `reader`."""

from typing import Any

import keras
import numpy as np

from ..runs.experiment import Experiment
from ..runs.networks import Networks, loss_and_error
from ..runs.probes import lstm_shares
from ..runs.run import Run, Setting, conditions_of
from . import conditions
from .data import PADDING, Part, most_frequent_wrong, read_corpus
from .model import READERS, build_model, lstm_inputs
from .section import LEARNING, PUBLISHED_TIMES, STAND_IN, baseline_sections

_PROBED = 16  # validation questions whose activations are measured


class Readers(Networks):
    """The networks of the task, with the data and their sizes."""

    def build(self, run: Run) -> keras.Model:
        return build_model(run.condition, run.step_size, run.seed, *self.sizes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        passages, questions, answers = (array[numbers] for array in self.data.train)
        return [passages, questions], answers

    def measure(self, model: keras.Model, part: Part) -> dict[str, float]:
        return loss_and_error(model, [part.passages, part.questions], part.answers, batch_size=128)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the shares in the LSTMs that read forwards."""
        texts = (self.data.valid.passages[:_PROBED], self.data.valid.questions[:_PROBED])
        found = {}
        for name, ids in zip(READERS, texts, strict=True):
            cell = model.get_layer(name).forward_layer.cell
            inputs = lstm_inputs(cell, ids, model.get_layer("words")(ids))
            found |= {
                f"{name} {what}": share
                for what, share in lstm_shares(cell, inputs, ids != PADDING).items()
            }
        return found

    def results(self) -> dict[str, Any]:
        """Returns the errors of the answer that a passage names most often."""
        parts = {"valid": self.data.valid, "test": self.data.test}
        return {
            "most_frequent_error": {name: most_frequent_wrong(part) for name, part in parts.items()}
        }


EXPERIMENT = Experiment(
    name="reader",
    title="An attentive reader",
    about=[STAND_IN],
    conditions=conditions_of(conditions),
    minutes=1,
    settings=(
        Setting(
            "batch-64", "batches of 64", batch_size=64, updates=400, window=20, validate_every=40
        ),
    ),
    step_sizes=(1e-3, 3e-3, 9e-3),
    metric="nll",
    metric_label="validation loss in nats",
    learning=LEARNING,
    load=lambda data: Readers(read_corpus(data)),
    more_sections=baseline_sections,
    share_over="the units, in the LSTMs that read forward",
    published_times=PUBLISHED_TIMES,
    rounds=15,
)
reproduce = EXPERIMENT.reproduce
