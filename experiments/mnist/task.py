"""Trains the network with every kind of normalization, measures, and reports: the task `mnist`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from ..data_sets.mnist import TRAINING, Mnist, read_mnist
from ..trials.book import ROOT
from ..trials.clock import ROUNDS
from ..trials.experiment import Experiment, Work, conduct
from ..trials.fitting import fit, order
from ..trials.probes import gain_rms, mean_share
from ..trials.trial import SEEDS, Setting, Trial, TrialRow, rows_of
from . import rows
from .model import HIDDEN, SUMS, build_model
from .section import sections

DATA = ""  # keras.datasets downloads it
STEP_SIZE = 1e-3


@dataclass(frozen=True)
class Scale:
    """The size of the experiment.

    Args:
        settings: The settings to train in.
        hidden: Units of a hidden layer.
        training: Images to train on; the others of the training set are for validation.
        seeds: The reported seeds.
        rounds: Rounds of the timing.
    """

    settings: Sequence[Setting] = (
        Setting("batch-128", "batches of 128", batch_size=128, updates=4300, window=86, validate_every=430),
        Setting("batch-4", "batches of 4", batch_size=4, updates=6000, window=200, validate_every=1000),
    )
    hidden: int = HIDDEN
    training: int = TRAINING
    seeds: Sequence[int] = SEEDS
    rounds: int = ROUNDS


def reproduce(data: str, so_far: bool, scale: Scale | None = None, root: Path = ROOT) -> None:
    """Trains every row, measures, and writes the report.

    Args:
        data: The folder of the four MNIST files; an empty string downloads them.
        so_far: Report on the trials that are done; train and measure nothing.
        scale: The size of the experiment; by default that of the kept report.
        root: The folder of logs and report.

    Raises:
        UserError: The data is not there, or nothing is done yet.
    """
    scale = scale or Scale()
    experiment = Experiment(
        name="mnist",
        title="Permutation-invariant MNIST",
        rows=rows_of(rows),
        settings=scale.settings,
        step_size=STEP_SIZE,
        metric="nll",
        sections=sections,
        seeds=scale.seeds,
        rounds=scale.rounds,
    )
    conduct(experiment, lambda: _load(data, scale), so_far, root)


def _load(data: str, scale: Scale) -> Work:
    mnist = read_mnist(data, scale.training)
    return Work(
        train=lambda trial, folder: train(trial, mnist, folder, scale.hidden),
        build=lambda row: _build(row, mnist, scale.hidden),
        batches={each.name: tuple(part[: each.batch_size] for part in mnist.train) for each in scale.settings},
    )


def _build(row: TrialRow, mnist: Mnist, hidden: int, step_size: float = STEP_SIZE, seed: int = 1) -> keras.Model:
    return build_model(row, step_size, seed, hidden, pixels=mnist.train.images.shape[-1])


def train(trial: Trial, mnist: Mnist, folder: Path, hidden: int = HIDDEN) -> dict[str, Any]:
    """Trains one network and returns its log.

    Args:
        trial: The training.
        mnist: The data.
        folder: Holds the checkpoint of an interrupted training.
        hidden: Units of a hidden layer.
    """

    def build() -> keras.Model:
        return _build(trial.row, mnist, hidden, trial.step_size, trial.seed)

    def examples(start: int, count: int):
        chosen = order(trial.seed, start, count, len(mnist.train.classes))
        return mnist.train.images[chosen], mnist.train.classes[chosen]

    shares = {"first": mean_share(build(), SUMS, mnist.valid.images)}
    log = fit(build, examples, trial.setting, lambda model: _validate(model, mnist), folder)
    model = log.pop("model")
    shares["last"] = mean_share(model, SUMS, mnist.valid.images)
    return {**log, "gains": gain_rms(model), "mean_share": shares}


def _validate(model: keras.Model, mnist: Mnist) -> dict[str, float]:
    """Returns the loss in nats and the error, on the validation images and on the test images."""
    found = {}
    for prefix, part in (("", mnist.valid), ("test_", mnist.test)):
        loss, accuracy = model.evaluate(part.images, part.classes, batch_size=1000, verbose=0)
        found |= {f"{prefix}nll": loss, f"{prefix}error": 1 - accuracy}
    return found
