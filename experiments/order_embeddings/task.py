"""Trains the embeddings with every kind of normalization, measures, and reports: the task `order_embeddings`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from nmt.errors import UserError

from ..trials.book import ROOT
from ..trials.clock import ROUNDS
from ..trials.experiment import Experiment, Work, conduct
from ..trials.fitting import fit, order
from ..trials.probes import gain_rms, gru_shares
from ..trials.trial import SEEDS, Setting, Trial, TrialRow, rows_of
from . import rows
from .data import CAPTIONS, Corpus, Part, read_corpus
from .model import build_model
from .retrieval import retrieval_scores
from .section import STAND_IN, sections

DATA = ""
STEP_SIZE = 1e-3
_PROBED = 200  # validation captions whose activations are measured


@dataclass(frozen=True)
class Scale:
    """The size of the experiment.

    Args:
        settings: The settings to train in.
        units: Size of the embeddings.
        word_units: Size of the word embeddings.
        seeds: The reported seeds.
        rounds: Rounds of the timing.
    """

    settings: Sequence[Setting] = (
        Setting("batch-128", "batches of 128", batch_size=128, updates=1000, window=50, validate_every=100),
    )
    units: int = 256
    word_units: int = 300
    seeds: Sequence[int] = SEEDS
    rounds: int = ROUNDS


def reproduce(data: str, so_far: bool, scale: Scale | None = None, root: Path = ROOT) -> None:
    """Trains every row, measures, and writes the report.

    Args:
        data: A folder with five captions of each image; see `data.read_corpus`.
        so_far: Report on the trials that are done; train and measure nothing.
        scale: The size of the experiment; by default that of the kept report.
        root: The folder of logs and report.

    Raises:
        UserError: The data is not there, or nothing is done yet.
    """
    if not (data or so_far):
        raise UserError("give the folder of the captions, task 2 of Multi30k: DATA=/path/to/captions")
    scale = scale or Scale()
    experiment = Experiment(
        name="order_embeddings",
        title="Order embeddings of images and captions",
        about=[STAND_IN],
        rows=rows_of(rows),
        settings=scale.settings,
        step_size=STEP_SIZE,
        metric="missed",
        sections=sections,
        seeds=scale.seeds,
        rounds=scale.rounds,
    )
    conduct(experiment, lambda: _load(data, scale), so_far, root)


def _load(data: str, scale: Scale) -> Work:
    corpus = read_corpus(data)
    return Work(
        train=lambda trial, folder: train(trial, corpus, folder, scale),
        build=lambda row: _build(row, STEP_SIZE, 1, corpus, scale),
        batches={each.name: _pairs(corpus.train, np.arange(each.batch_size)) for each in scale.settings},
    )


def _build(row: TrialRow, step_size: float, seed: int, corpus: Corpus, scale: Scale) -> keras.Model:
    return build_model(row, step_size, seed, corpus.train.images.shape[1], scale.units, scale.word_units)


def train(trial: Trial, corpus: Corpus, folder: Path, scale: Scale) -> dict[str, Any]:
    """Trains one network and returns its log.

    Args:
        trial: The training.
        corpus: The data.
        folder: Holds the checkpoint of an interrupted training.
        scale: The size of the network.
    """

    def build() -> keras.Model:
        return _build(trial.row, trial.step_size, trial.seed, corpus, scale)

    def examples(start: int, count: int):
        return _pairs(corpus.train, order(trial.seed, start, count, corpus.train.images.shape[0] * len(CAPTIONS)))

    def shares(model: keras.Model) -> dict[str, float]:
        captions = corpus.valid.captions[:_PROBED, 0]
        words = model.get_layer("words")
        return gru_shares(model.get_layer("gru").cell, words(captions), captions != 0)

    before = shares(build())
    log = fit(build, examples, trial.setting, lambda model: _validate(model, corpus), folder)
    model = log.pop("model")
    return {**log, "gains": gain_rms(model), "mean_share": {"first": before, "last": shares(model)}}


def _pairs(part: Part, numbers: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns images and captions as inputs, and targets that the loss does not read, for some numbers of pairs."""
    images, captions = np.divmod(numbers, len(CAPTIONS))
    inputs = [part.images[images].toarray(), part.captions[images, captions]]
    return inputs, np.zeros(len(numbers), np.float32)


def _validate(model: keras.Model, corpus: Corpus) -> dict[str, float]:
    """Returns the retrieval scores on the validation images and on the test images."""
    test = _scores(model, corpus.test)
    return _scores(model, corpus.valid) | {f"test_{name}": value for name, value in test.items()}


def _scores(model: keras.Model, part: Part) -> dict[str, float]:
    numbers = np.arange(part.images.shape[0] * len(CAPTIONS))
    found = model.predict(_pairs(part, numbers)[0], batch_size=512, verbose=0)  # [pairs, 2, units]
    return retrieval_scores(found[:: len(CAPTIONS), 0], found[:, 1].reshape(-1, len(CAPTIONS), found.shape[-1]))
