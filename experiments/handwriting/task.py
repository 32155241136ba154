"""Prediction of handwriting with every kind of normalization: the task `handwriting`."""

import keras
import numpy as np

from ..runs.experiment import Experiment
from ..runs.kinds import CELL_CONDITIONS
from ..runs.learning import Column, Comparison, Curve, Learning, faster, last, mean_of
from ..runs.networks import Networks, in_batches
from ..runs.probes import lstm_shares
from ..runs.run import Run, Setting
from .data import read_lines
from .model import LSTMS, build_model

_TEXT = (
    "Two LSTMs of 64 units, with the norm inside, read the points of a pen and predict the next "
    "as 20 mixed normal distributions. The paper has three LSTMs of 400 units, which also read "
    "the text to write, lines of up to 500 points and batches of 8. The loss is in nats a point. "
    "Offsets are divided by their standard deviation, which shifts the loss by a constant, so "
    "margins are in nats and not in percent. Its mean over the whole training tells how fast it "
    "falls. Values are means over the seeds, with the standard deviation (sd)."
)

_PROBED = 8  # validation lines whose activations are measured
_MEASURED = 200  # lines of a validation


class Writers(Networks):
    def build(self, run: Run) -> keras.Model:
        return build_model(
            run.condition, run.step_size, run.seed, run.setting.options["length"], *self.sizes
        )

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        """Returns the points before those to predict, and those to predict."""
        return _shifted(self.data.train[numbers, : setting.options["length"]])

    def measure(self, model: keras.Model, part: np.ndarray) -> dict[str, float]:
        lines = part[:_MEASURED, : model.input_shape[1]]
        return {"nll": model.evaluate(in_batches(*_shifted(lines), batch_size=100), verbose=0)}

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        points, _ = _shifted(self.data.valid[:_PROBED, : model.input_shape[1]])
        probe = keras.Model(model.input, [model.get_layer(name).input for name in LSTMS])
        found: dict[str, float] = {}
        for name, inputs in zip(LSTMS, probe(points), strict=True):
            shares = lstm_shares(model.get_layer(name).cell, inputs)
            found |= {f"{name} {what}": share for what, share in shares.items()}
        return found


def _shifted(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the point before each point, zeros before the first, and the points."""
    return np.pad(points[:, :-1], ((0, 0), (1, 0), (0, 0))), points


EXPERIMENT = Experiment(
    name="handwriting",
    title="Prediction of handwriting",
    conditions=CELL_CONDITIONS,
    minutes=0.9,
    settings=[
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
    ],
    step_sizes=(1e-3 / 3, 1e-3, 3e-3, 9e-3, 27e-3, 81e-3),
    metric="nll",
    metric_label="validation loss in nats a point",
    learning=Learning(
        title="The loss (Ba et al. 2016, section 6.5)",
        text=_TEXT,
        columns=(
            Column("mean validation loss", mean_of("nll"), 3),
            Column("last validation loss", last("nll"), 3),
            Column("last test loss", last("test_nll"), 3),
        ),
        curves=(
            Curve("train", "loss", "training loss, nats a point", scale="linear"),
            Curve("validations", "nll", "validation loss, nats a point", scale="linear"),
        ),
        comparisons=[
            Comparison(
                "mean validation loss",
                mean_of("nll"),
                unit=" nats",
                digits=3,
                hypotheses=faster("Ba et al., section 6.5: a curve"),
            )
        ],
    ),
    load=lambda data: Writers(read_lines(data)),
    rounds=15,
)
reproduce = EXPERIMENT.reproduce
