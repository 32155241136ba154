"""The training loop: updates, validation, early stopping, checkpoints.

The last checkpoint holds everything that the next update depends on, and batch n and its dropout are functions of
(seed, n). So a resumed training equals one that was never interrupted.
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

import tensorflow as tf
from tqdm import tqdm

from ..config import Config
from ..decoding.metrics import bleu
from ..errors import UserError
from ..model.contract import TranslationModel
from ..storage.checkpoints import BEST, LAST, load_checkpoint, save_checkpoint
from ..storage.files import atomic_write
from ..text.batches import Batch
from ..text.by_length import map_by_length
from ..text.datasets import TrainingData, ValidationData
from .interruption import Interrupted, noting_signals
from .progress import Progress, Validation
from .update import Update

MOST_SKIPPED = 10  # updates in a row; then the training stops


class Trainer:
    """Trains a model.

    Args:
        model: The model.
        update: Updates the model from a batch.
        config: How long to train, and when to validate.
        directory: Where checkpoints and logs go. A training found there is resumed.
        made_with: Values that a training found there must share, by name.

    Attributes:
        progress: How far the training is.

    Raises:
        UserError: The training found there cannot be resumed.
    """

    def __init__(
        self,
        model: TranslationModel,
        update: Update,
        config: Config,
        directory: Path,
        made_with: Mapping[str, Any] = MappingProxyType({}),
    ):
        self._model, self._update, self._config = model, update, config
        self._directory, self._made_with = directory, made_with
        self._costs = tf.function(model.costs, reduce_retracing=True)
        self.progress, self._saved = Progress(), 0  # the latter is the update of the newest checkpoint
        if (directory / LAST).exists():
            self.progress = Progress.from_json(load_checkpoint(directory / LAST, update.variables, made_with))
            self._saved = self.progress.update
        self._start = time.monotonic()
        self._words = self._seconds_of_updates = 0.0  # target words of this run, and the time of their updates

    def train(
        self, data: TrainingData, valid: ValidationData, translate: Callable[[Sequence[bytes]], list[str]]
    ) -> Progress:
        """Trains until the configuration says stop, and returns the progress.

        Args:
            data: The training batches.
            valid: The validation corpus.
            translate: Maps a batch of lines to their translations.

        Raises:
            UserError: The loss is not finite in `MOST_SKIPPED` updates in a row or on the validation text, or a
                checkpoint cannot be written.
            Interrupted: The process was asked to end; the last update is saved.
        """
        self._start = time.monotonic() - self.progress.seconds
        last = min(self._config.finish_after, self._config.max_epochs * data.batches_per_epoch)
        batches = iter(data.batches(self.progress.update))
        if self.progress.validated:
            self._keep(self.progress)  # a killed process may have saved only `LAST`
        with self._summaries() as writer, noting_signals() as poll, self._progress_bar(last) as bar:
            try:
                while self.progress.bad_validations < self._config.patience:
                    poll()
                    if self._validation_is_due(last):
                        epoch = self.progress.update / data.batches_per_epoch
                        validation = self._validate(valid, translate, epoch, poll)
                        self._keep(self.progress.after_validation(validation))
                        _log(validation, writer)
                    elif self.progress.update < last:
                        self._train_on(next(batches), bar)
                    else:
                        break
            except Interrupted:
                if not self.progress.skipped_in_a_row:  # else the last checkpoint is the better one to resume from
                    self._save(LAST, replace(self.progress, seconds=self._seconds()))
                raise
            finally:
                del batches  # ends the threads that read text; they must not outlive the interpreter
        return self.progress

    def _progress_bar(self, last: int) -> tqdm:
        return tqdm(initial=self.progress.update, total=last, unit=" updates")

    def _validation_is_due(self, last: int) -> bool:
        update = self.progress.update
        return update > 0 and not self.progress.validated and (update % self._config.valid_freq == 0 or update >= last)

    def _train_on(self, batch: Batch, bar: tqdm) -> None:
        begun, number = time.monotonic(), self.progress.update + 1
        cost, words, norm = self._update(batch, number)
        finite = math.isfinite(cost) and math.isfinite(norm)
        self.progress = self.progress.after_update(cost, words) if finite else self.progress.after_skipping()
        self._words, self._seconds_of_updates = self._words + words, self._seconds_of_updates + time.monotonic() - begun
        bar.update()
        if finite:
            loss, speed = self.progress.loss / self.progress.tokens, self._words / self._seconds_of_updates
            bar.set_postfix_str(f"loss {loss:.3f}, {speed:.0f} words/s", refresh=False)
            return
        seen = f"the loss is {cost}, the norm of its gradient {norm}"
        _say(f"update {number} is skipped: {seen}")
        if self.progress.skipped_in_a_row == MOST_SKIPPED:
            raise self._broken(f"{MOST_SKIPPED} updates in a row were skipped; in the last, of update {number}, {seen}")

    def _validate(self, valid: ValidationData, translate, epoch: float, poll: Callable[[], None]) -> Validation:
        def polled(lines: Sequence[bytes]) -> list[str]:
            poll()
            return translate(lines)

        progress = self.progress
        valid_loss = self._valid_loss(valid, poll)
        if not math.isfinite(valid_loss):
            raise self._broken(f"the loss on the validation text is {valid_loss} after update {progress.update}")
        translations = list(map_by_length(polled, [valid.sources], self._config.valid_batch_size))
        return Validation(
            update=progress.update,
            epoch=round(epoch, 3),
            train_loss=progress.loss / progress.tokens if progress.tokens else math.nan,
            valid_loss=valid_loss,
            bleu=bleu(translations, valid.references).score,
            seconds=self._seconds(),
            counts=progress.update % self._config.valid_freq == 0,
        )

    def _valid_loss(self, valid: ValidationData, poll: Callable[[], None]) -> float:
        cost = words = 0.0
        for batch in valid.batches:
            poll()
            cost += float(tf.reduce_sum(self._costs(*batch)))
            words += float(tf.reduce_sum(batch.target_mask))
        return cost / words

    def _broken(self, seen: str) -> UserError:
        kept = f"{self._directory} keeps the model of update {self._saved}" if self._saved else "nothing is saved yet"
        return UserError(f"{seen}; train again with a lower --learning_rate or --clip_c; {kept}")

    def _seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)

    def _keep(self, progress: Progress) -> None:
        """Saves after a validation. `LAST` comes first, since `BEST` can be written again from it."""
        self.progress = progress
        self._save(LAST, progress)
        if progress.best is progress.validations[-1]:
            self._save(BEST, progress)
        with atomic_write(self._directory / "progress.json") as file:
            file.write(json.dumps(asdict(progress), indent=2) + "\n")

    def _save(self, name: str, progress: Progress) -> None:
        variables = self._model.variables if name == BEST else self._update.variables
        save_checkpoint(self._directory / name, variables, asdict(progress), self._made_with)
        self._saved = progress.update

    @contextlib.contextmanager
    def _summaries(self) -> Iterator[tf.summary.SummaryWriter]:
        """Rewrites the logs for TensorBoard, so that they hold each validation once."""
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
