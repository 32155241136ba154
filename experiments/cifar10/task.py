"""Trains the network with every kind of normalization, measures, and reports: the task `cifar10`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from ..trials.book import ROOT
from ..trials.clock import ROUNDS
from ..trials.experiment import Experiment, Work, conduct
from ..trials.fitting import fit, order
from ..trials.probes import gain_rms, mean_share
from ..trials.trial import SEEDS, Setting, Trial, TrialRow, rows_of
from . import rows
from .data import Cifar10, Part, read_cifar10
from .model import SUMS, build_model
from .rows.kinds import SPACE
from .section import sections

DATA = ""  # keras.datasets downloads it
STEP_SIZE = 1e-3
_PROBED = 200  # validation images whose activations are measured


@dataclass(frozen=True)
class Scale:
    """The size of the experiment.

    Args:
        settings: The settings to train in.
        widths: Channels of the first three convolutions, and of the others; the paper has 96 and 192.
        seeds: The reported seeds.
        rounds: Rounds of the timing.
    """

    settings: Sequence[Setting] = (
        Setting("batch-100", "batches of 100", batch_size=100, updates=1080, window=30, validate_every=90),
    )
    widths: tuple[int, int] = (16, 32)
    seeds: Sequence[int] = SEEDS
    rounds: int = ROUNDS


def reproduce(data: str, so_far: bool, scale: Scale | None = None, root: Path = ROOT) -> None:
    """Trains every row, measures, and writes the report.

    Args:
        data: An .npz file with CIFAR-10 or a part of it, or a folder with one; an empty string downloads it.
        so_far: Report on the trials that are done; train and measure nothing.
        scale: The size of the experiment; by default that of the kept report.
        root: The folder of logs and report.

    Raises:
        UserError: The data is not there, or nothing is done yet.
    """
    scale = scale or Scale()
    experiment = Experiment(
        name="cifar10",
        title="CIFAR-10",
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
    cifar10 = read_cifar10(data)
    return Work(
        train=lambda trial, folder: train(trial, cifar10, folder, scale.widths),
        build=lambda row: _build(row, STEP_SIZE, 1, scale.settings[0].updates, scale.widths, cifar10),
        batches={each.name: tuple(part[: each.batch_size] for part in cifar10.train) for each in scale.settings},
    )


def _build(
    row: TrialRow, step_size: float, seed: int, updates: int, widths: tuple[int, int], cifar10: Cifar10
) -> keras.Model:
    return build_model(row, step_size, seed, updates, widths, pixels=cifar10.train.images.shape[1])


def train(trial: Trial, cifar10: Cifar10, folder: Path, widths: tuple[int, int]) -> dict[str, Any]:
    """Trains one network and returns its log.

    Args:
        trial: The training.
        cifar10: The data.
        folder: Holds the checkpoint of an interrupted training.
        widths: Channels of the first three convolutions, and of the others.
    """

    def build() -> keras.Model:
        return _build(trial.row, trial.step_size, trial.seed, trial.setting.updates, widths, cifar10)

    def examples(start: int, count: int):
        chosen = order(trial.seed, start, count, len(cifar10.train.classes))
        return cifar10.train.images[chosen], cifar10.train.classes[chosen]

    def shares(model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, cifar10.valid.images[:_PROBED], SPACE)

    before = shares(build())
    log = fit(build, examples, trial.setting, lambda model: _validate(model, cifar10), folder)
    model = log.pop("model")
    return {**log, "gains": gain_rms(model), "mean_share": {"first": before, "last": shares(model)}}


def _validate(model: keras.Model, cifar10: Cifar10) -> dict[str, float]:
    """Returns the loss in nats and the error, on the validation images and on the test images."""
    return _evaluate(model, cifar10.valid, "") | _evaluate(model, cifar10.test, "test_")


def _evaluate(model: keras.Model, part: Part, prefix: str) -> dict[str, float]:
    loss, accuracy = model.evaluate(part.images, part.classes, batch_size=500, verbose=0)
    return {f"{prefix}nll": loss, f"{prefix}error": 1 - accuracy}
