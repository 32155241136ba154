"""Trains DRAW with every kind of normalization, measures, and reports: the task `draw`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from ..data_sets.mnist import read_mnist
from ..trials.book import ROOT
from ..trials.clock import ROUNDS
from ..trials.experiment import Experiment, Work, conduct
from ..trials.fitting import fit, order
from ..trials.probes import gain_rms, share_of_mean
from ..trials.trial import SEEDS, Setting, Trial, TrialRow, rows_of
from . import rows
from .model import build_model, draw_samples
from .section import encode_picture, sections

DATA = ""  # keras.datasets downloads it
STEP_SIZE = 1e-3
TRAINING = 50_000
_BINARIZATION = 0  # seed of the pixels
_PROBED = 200  # validation images whose cell states are measured
_DRAWINGS = 16


@dataclass(frozen=True)
class Scale:
    """The size of the experiment.

    Args:
        settings: The settings to train in.
        units: Size of the two LSTMs.
        latent: Size of what a step draws.
        steps: Number of steps; the paper has 64.
        training: Images to train on; the others of the training set are for validation.
        seeds: The reported seeds.
        rounds: Rounds of the timing.
    """

    settings: Sequence[Setting] = (
        Setting("batch-128", "batches of 128", batch_size=128, updates=1560, window=39, validate_every=195),
    )
    units: int = 256
    latent: int = 10
    steps: int = 16
    training: int = TRAINING
    seeds: Sequence[int] = SEEDS
    rounds: int = ROUNDS


class Images(NamedTuple):
    """Binarized images `[images, pixels]`, float32."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


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
        name="draw",
        title="DRAW on binarized MNIST",
        rows=rows_of(rows),
        settings=scale.settings,
        step_size=STEP_SIZE,
        metric="bound",
        sections=sections,
        seeds=scale.seeds,
        rounds=scale.rounds,
    )
    conduct(experiment, lambda: _load(data, scale), so_far, root)


def _load(data: str, scale: Scale) -> Work:
    images = binarize(data, scale.training)
    return Work(
        train=lambda trial, folder: train(trial, images, folder, scale),
        build=lambda row: _build(row, STEP_SIZE, 1, images, scale),
        batches={each.name: (images.train[: each.batch_size],) * 2 for each in scale.settings},
    )


def binarize(data: str, training: int = TRAINING) -> Images:
    """Reads MNIST and draws each pixel once, 1 with its brightness as probability. The same pixels come every time."""
    generator = np.random.default_rng(_BINARIZATION)
    parts = [part.images for part in read_mnist(data, training)]
    return Images(*((generator.random(part.shape) < part).astype(np.float32) for part in parts))


def _build(row: TrialRow, step_size: float, seed: int, images: Images, scale: Scale) -> keras.Model:
    sizes = {"pixels": images.train.shape[1], "units": scale.units, "latent": scale.latent, "steps": scale.steps}
    return build_model(row, step_size, seed, **sizes)


def train(trial: Trial, images: Images, folder: Path, scale: Scale) -> dict[str, Any]:
    """Trains one network and returns its log.

    Args:
        trial: The training.
        images: The data.
        folder: Holds the checkpoint of an interrupted training.
        scale: The size of the network.
    """

    def build() -> keras.Model:
        return _build(trial.row, trial.step_size, trial.seed, images, scale)

    def examples(start: int, count: int):
        chosen = images.train[order(trial.seed, start, count, len(images.train))]
        return chosen, chosen

    before = cell_shares(build(), images.valid[:_PROBED])
    log = fit(build, examples, trial.setting, lambda model: _validate(model, images), folder)
    model = log.pop("model")
    shares = {"first": before, "last": cell_shares(model, images.valid[:_PROBED])}
    drawings = [encode_picture(each) for each in draw_samples(model, _DRAWINGS, scale.steps, seed=0)]
    return {**log, "gains": gain_rms(model), "mean_share": shares, "samples": drawings}


def cell_shares(model: keras.Model, images: np.ndarray) -> dict[str, float]:
    """Returns the share of the mean in the cell states of both LSTMs, over all steps."""
    step, inputs = model.get_layer("drawing").cell, model.get_layer("noise")(images)
    states = [keras.ops.zeros((len(images), size)) for size in step.state_size]
    found: dict[str, list[np.ndarray]] = {"encoder": [], "decoder": []}
    for number in range(inputs.shape[1]):
        _, states = step(inputs[:, number], states)
        for name, c in (("encoder", states[1]), ("decoder", states[3])):
            found[name].append(keras.ops.convert_to_numpy(c))
    return {name: share_of_mean(np.concatenate(each)) for name, each in found.items()}


def _validate(model: keras.Model, images: Images) -> dict[str, float]:
    """Returns the bound in nats, on the validation images and on the test images."""
    parts = {"bound": images.valid, "test_bound": images.test}
    return {name: model.evaluate(part, part, batch_size=500, verbose=0) for name, part in parts.items()}
