"""The training loop: updates, validation, early stopping, checkpoints.

All that the loop carries from one update to the next is saved in the last checkpoint, and batch n and its dropout are
functions of (seed, n), so a training that goes on equals one that was never interrupted.
"""

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import keras
import tensorflow as tf
from tqdm import tqdm

from ..config import Config
from ..decoding.metrics import bleu
from ..errors import UserError
from ..storage.checkpoints import BEST, LAST, load_checkpoint, save_checkpoint
from ..storage.files import atomic_write
from ..text.batches import Batch, TrainingData, ValidationData
from .interruption import Interrupted, unmasked, whole
from .progress import Progress, Validation
from .update import Update

MOST_SKIPPED = 10  # updates in a row; then the training stops


class Trainer:
    """Trains a model.

    Args:
        model: Offers `costs`, as `rnnsearch.RNNSearch` does.
        config: How to train.
        directory: Where checkpoints and logs go; a training found there goes on.
        made_with: What must be the same when the training goes on, by name.

    Attributes:
        progress: Where the training stands.

    Raises:
        UserError: The training found there cannot go on.
    """

    def __init__(
        self,
        model: keras.Model,
        config: Config,
        directory: Path,
        made_with: Mapping[str, Any] = MappingProxyType({}),
    ):
        self._model, self._config, self._directory, self._made_with = model, config, directory, made_with
        self._update = Update(model, config)
        self._costs = tf.function(model.costs, reduce_retracing=True)
        self.progress, self._kept = Progress(), 0  # and the update that was saved last
        if (directory / LAST).exists():
            self.progress = Progress.from_json(load_checkpoint(directory / LAST, self._update.variables, made_with))
            self._kept = self.progress.update
        self._start = time.monotonic()
        self._words = self._training = 0.0  # target words of this run, and the seconds that their updates took

    def train(
        self, data: TrainingData, valid: ValidationData, translate: Callable[[Sequence[bytes]], list[str]]
    ) -> Progress:
        """Trains until the configuration says stop, and returns where it stopped.

        Args:
            data: The training batches.
            valid: The validation corpus.
            translate: Maps lines to translations, in order.

        Raises:
            UserError: The loss stays not finite, or a checkpoint cannot be written.
            Interrupted: The process was asked to end; all that was done is saved.
        """
        self._start = time.monotonic() - self.progress.seconds
        last = min(self._config.finish_after, self._config.max_epochs * data.batches_per_epoch)
        batches = iter(data.batches(self.progress.update))
        if self.progress.validated:
            self._keep(self.progress)  # as it was interrupted before all was written
        with self._summaries() as writer, tqdm(initial=self.progress.update, total=last, unit=" updates") as bar:
            try:
                with unmasked():
                    while self.progress.bad_validations < self._config.patience:
                        if self._validation_is_due(last):
                            epoch = self.progress.update / data.batches_per_epoch
                            validation = self._validate(valid, translate, epoch)
                            self._keep(self.progress.after_validation(validation))
                            _log(validation, writer)
                        elif self.progress.update < last:
                            self._train_on(batches, bar)
                        else:
                            break
            except Interrupted:
                if not self.progress.skipped_in_a_row:  # or the last good checkpoint is the better one to go on from
                    with whole():
                        self._save(LAST, replace(self.progress, seconds=self._seconds()))
                raise
        return self.progress

    def _validation_is_due(self, last: int) -> bool:
        update = self.progress.update
        return update > 0 and not self.progress.validated and (update % self._config.valid_freq == 0 or update >= last)

    def _train_on(self, batches: Iterator[Batch], bar: tqdm) -> None:
        begun, number = time.monotonic(), self.progress.update + 1
        batch = next(batches)
        with whole():
            loss, tokens, norm = self._update(batch, number)
            finite = math.isfinite(loss) and math.isfinite(norm)
            self.progress = self.progress.after_update(loss, tokens) if finite else self.progress.after_skipping()
        self._words, self._training = self._words + tokens, self._training + time.monotonic() - begun
        bar.update()
        if finite:
            loss, speed = self.progress.loss / self.progress.tokens, self._words / self._training
            bar.set_postfix_str(f"loss {loss:.3f}, {speed:.0f} words/s", refresh=False)
            return
        seen = f"the loss is {loss}, the norm of its gradient {norm}"
        _say(f"update {number} is skipped: {seen}")
        if self.progress.skipped_in_a_row == MOST_SKIPPED:
            raise self._broken(f"{MOST_SKIPPED} updates in a row were skipped; in the last, of update {number}, {seen}")

    def _validate(self, valid: ValidationData, translate, epoch: float) -> Validation:
        progress = self.progress
        valid_loss = self._valid_loss(valid)
        if not math.isfinite(valid_loss):
            raise self._broken(f"the loss on the validation text is {valid_loss} after update {progress.update}")
        return Validation(
            update=progress.update,
            epoch=round(epoch, 3),
            train_loss=progress.loss / progress.tokens if progress.tokens else math.nan,
            valid_loss=valid_loss,
            bleu=bleu(translate(valid.sources), valid.references).score,
            seconds=self._seconds(),
            counts=progress.update % self._config.valid_freq == 0,
        )

    def _valid_loss(self, valid: ValidationData) -> float:
        costs = sum(float(tf.reduce_sum(self._costs(*batch))) for batch in valid.batches)
        return costs / sum(float(tf.reduce_sum(batch.target_mask)) for batch in valid.batches)

    def _broken(self, seen: str) -> UserError:
        kept = (
            f"the model of update {self._kept} is kept in {self._directory}" if self._kept else "nothing is saved yet"
        )
        return UserError(f"{seen}; begin another training with a lower --learning_rate or --clip_c; {kept}")

    def _seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)

    def _keep(self, progress: Progress) -> None:
        """Saves what a validation ends with. The best model comes second: it can be made of the last one."""
        with whole():
            self.progress = progress
            self._save(LAST, progress)
            if progress.best is progress.validations[-1]:
                self._save(BEST, progress)
            with atomic_write(self._directory / "progress.json") as file:
                file.write(json.dumps(asdict(progress), indent=2) + "\n")

    def _save(self, name: str, progress: Progress) -> None:
        variables = self._model.variables if name == BEST else self._update.variables
        save_checkpoint(self._directory / name, variables, asdict(progress), self._made_with)
        self._kept = progress.update

    @contextlib.contextmanager
    def _summaries(self) -> Iterator[tf.summary.SummaryWriter]:
        """Begins the logs for TensorBoard anew, so that they hold each validation once."""
        for old in (self._directory / "logs").glob("events.out.tfevents.*"):
            old.unlink()
        writer = tf.summary.create_file_writer(str(self._directory / "logs"))
        for validation in self.progress.validations:
            _summarize(validation, writer)
        with contextlib.closing(writer):
            yield writer


def _log(validation: Validation, writer: tf.summary.SummaryWriter) -> None:
    _summarize(validation, writer)
    _say(
        f"update {validation.update}  train loss {validation.train_loss:.3f}  "
        f"valid loss {validation.valid_loss:.3f}  BLEU {validation.bleu:.2f}  {validation.seconds:.0f} s"
    )


def _summarize(validation: Validation, writer: tf.summary.SummaryWriter) -> None:
    with writer.as_default(step=validation.update):
        for name in ("train_loss", "valid_loss", "bleu"):
            tf.summary.scalar(name, getattr(validation, name))
    writer.flush()


def _say(text: str) -> None:
    tqdm.write(text, file=sys.stderr)
