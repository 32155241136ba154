"""Prediction of handwriting with every kind of normalization: the task `handwriting`."""

import keras
import numpy as np

from ..data_sets.arrays import Parts
from ..trials.experiment import Experiment, conduct
from ..trials.feeding import in_batches
from ..trials.networks import Networks
from ..trials.probes import lstm_shares
from ..trials.trial import Setting, Trial, rows_of
from . import rows
from .data import read_lines
from .model import LSTMS, UNITS, build_model
from .section import LEARNING

_SETTINGS = [
    Setting(
        f"length-{length}",
        f"{length} points, batches of {batch_size}",
        batch_size=batch_size,
        updates=updates,
        window=20,
        validate_every=updates // 10,
        options={"length": length},
    )
    for length, batch_size, updates in ((200, 16, 800), (500, 4, 400))
]
EXPERIMENT = Experiment(
    name="handwriting",
    title="Prediction of handwriting",
    rows=rows_of(rows),
    settings=_SETTINGS,
    step_size=1e-3,
    metric="nll",
    metric_label="validation loss in nats a point",
    learning=LEARNING,
    rounds=15,
)
_PROBED = 8  # validation lines whose activations are measured
_MEASURED = 200  # lines of a validation


class Writers(Networks):
    """The networks of the task, with the data and their sizes."""

    def __init__(self, lines: Parts, units: int = UNITS):
        super().__init__(lines, len(lines.train))
        self._units = units

    def build(self, trial: Trial) -> keras.Model:
        return build_model(trial.row, trial.step_size, trial.seed, trial.setting.options["length"], self._units)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        """Returns the points before those to predict, and those to predict."""
        return _shifted(self.data.train[numbers, : setting.options["length"]])

    def measure(self, model: keras.Model, part: np.ndarray) -> dict[str, float]:
        """Returns the loss in nats a point."""
        lines = part[:_MEASURED, : model.input_shape[1]]
        return {"nll": model.evaluate(in_batches(*_shifted(lines), batch_size=100), verbose=0)}

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        points, _ = _shifted(self.data.valid[:_PROBED, : model.input_shape[1]])
        probe = keras.Model(model.input, [model.get_layer(name).input for name in LSTMS])
        return {
            f"{name} {what}": share
            for name, inputs in zip(LSTMS, probe(points), strict=True)
            for what, share in lstm_shares(model.get_layer(name).cell, inputs).items()
        }


def _shifted(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the point before each point, zeros before the first, and the points."""
    return np.pad(points[:, :-1], ((0, 0), (1, 0), (0, 0))), points


def reproduce(data: str, so_far: bool) -> None:
    """Runs the task; see `conduct`. `data` is the file with the lines; see `read_lines`."""
    conduct(EXPERIMENT, lambda: Writers(read_lines(data)), so_far)
