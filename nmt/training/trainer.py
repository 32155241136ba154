"""Runs the training loop: updates, validation, early stopping, checkpoints.

The last checkpoint holds everything that the next update depends on. Batch n and its dropout depend
only on the seed and n. So a resumed training equals one that was never interrupted, if it has the
same number of processes.
"""

import contextlib
import functools
import math
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..messages import log
from ..storage.checkpoints import LAST, load_checkpoint
from ..text.batches import Batch
from ..text.datasets import TrainingData
from .display import Bar, TrainingLog
from .interruption import Interrupted, deferred_signals, interruptible
from .model_directory import ModelDirectory
from .progress import Progress, Validation
from .update import Update
from .validation import SCORES, Measured

MOST_SKIPPED = 10  # skipped updates in a row that stop the training


class Trainer:
    """Trains a model as the configuration of `update` says.

    Only the chief of its processes validates and writes.
    """

    def __init__(self, update: Update, directory: Path, fingerprint: Mapping[str, Any]):
        self._update = update
        self._config = update.config
        self._replicas = update.replicas
        self._path = directory
        self._directory = ModelDirectory(directory, update, fingerprint)
        self.progress = self._directory.resume()
        self._plateaus = 0  # of the validation loss so far; each has reduced the learning rate
        self._compiled: set[int] = set()  # widths of batches
        self._words = 0.0  # target tokens of this run
        self._seconds_of_updates = 0.0

    def continue_from(self, directory: Path, fingerprint: Mapping[str, Any]) -> None:
        """Takes over the last state of another training, without its validations: texts may
        differ.
        """
        found = Progress.from_json(
            load_checkpoint(directory / LAST, self._update.variables, fingerprint)
        )
        self.progress = Progress(update=found.update, begin=found.update)

    def last_update(self, data: TrainingData) -> tuple[int, str]:
        """Returns the number of the last update, and the option that sets it."""
        config = self._config
        last = config.max_epochs * data.batches_per_epoch
        if last >= config.finish_after:
            return config.finish_after, f"--finish_after {config.finish_after}"
        return last, f"--max_epochs {config.max_epochs}"

    def require_updates_left(self, data: TrainingData) -> None:
        """Raises `UserError` if the training has made its last update before."""
        update = self.progress.update
        last, option = self.last_update(data)
        if update > last or 0 < self.progress.begin == update == last:
            raise UserError(
                f"this training has made {update} updates, and {option} ends it at {last}; give a "
                "larger one"
            )

    def train(self, data: TrainingData, validate: Callable[[], Measured]) -> str:
        """Trains until a limit of the configuration is reached, and returns which.

        Raises:
            Interrupted: SIGTERM or Ctrl-C came; the last update is saved, unless it was skipped.
        """
        self._start = time.monotonic() - self.progress.seconds
        self._reduce_learning_rate()
        self._valid_freq = self._config.valid_freq or min(max(data.batches_per_epoch, 500), 10_000)
        self._last, limit = self.last_update(data)
        batches = data.batches(self.progress.update, (self._replicas.rank, self._replicas.count))
        if self.progress.validated:
            self._directory.keep(self.progress)  # a killed process may have saved only `LAST`
        figures = TrainingLog(self._path / "logs" if self._replicas.is_chief else None)
        log.info(
            f"{data.batches_per_epoch} updates are an epoch; validates every {self._valid_freq} "
            f"updates; stops after {self._config.patience} validations in a row without a better "
            f"one, or at {limit}"
        )
        with contextlib.closing(figures.writer), deferred_signals() as received, Bar(data) as bar:
            try:
                while self._ranked().bad_validations < self._config.patience:
                    self._stop_together(received)
                    if self._validation_is_due():
                        self._validate(validate, data, figures, received)
                    elif self.progress.update < self._last:
                        bar.reset_total(self.progress, self._valid_freq, self._last)
                        self._train_on(next(batches), bar, figures, received)
                        if self._directory.save_is_due(self.progress.update):
                            figures.writer.flush()
                            self._save_last()
                    else:
                        self._replicas.final_barrier()
                        return limit
            except Interrupted:
                figures.writer.flush()
                self._save_last()
                self._replicas.final_barrier()
                raise
            finally:
                # Stops the threads that read text, which must not outlive the interpreter.
                del batches
        self._replicas.final_barrier()
        count = self.progress.bad_validations
        return f"{count} validations in a row without a better one (--patience)"

    def _ranked(self) -> Progress:
        """Returns the progress with the ranking of the configuration."""
        return self.progress.ranked_by(
            self._config.valid_metric, self._config.valid_tokenizer, self._config.decoding.search
        )

    def _stop_together(self, received: list[int]) -> None:
        """Raises `Interrupted` in all processes if one of them has received a signal."""
        if self._replicas.any(bool(received)):
            raise Interrupted(128 + (*received, signal.SIGTERM)[0])

    def _validation_is_due(self) -> bool:
        """Returns whether to validate now.

        A model of another training is validated before its first update.
        """
        progress = self.progress
        if progress.update == progress.begin:
            return bool(self._config.reload) and not progress.validations
        return not progress.validated and (
            progress.update % self._valid_freq == 0 or progress.update >= self._last
        )

    def _train_on(self, batch: Batch, bar: Bar, figures: TrainingLog, received: list[int]) -> None:
        number = self.progress.update + 1
        begun = time.monotonic()
        width = batch.source.shape[1]
        if width in self._compiled:
            cost, words, norm = self._update(batch, number)
            self._words += words
            self._seconds_of_updates += time.monotonic() - begun
        else:
            self._compiled.add(width)
            with bar.compiling(width):
                compute = functools.partial(self._update.gradients, batch, number)
                gradients = interruptible(compute, received)
                self._stop_together(received)
            cost, words, norm = self._update.apply(gradients)
        speed = self._words / self._seconds_of_updates if self._words else 0.0
        if math.isfinite(cost) and math.isfinite(norm):
            self.progress = self.progress.after_update(cost, words)
        else:
            self._skip(number, f"the loss is {cost}, the norm of its gradient {norm}")
        if number % self._config.summary_freq == 0:
            figures.update(
                number,
                loss=cost / words,
                gradient_norm=norm,
                learning_rate=self._update.learning_rate,
                tokens_per_second=speed,
            )
        bar.advance(self.progress, speed)

    def _skip(self, number: int, what: str) -> None:
        self.progress = self.progress.after_skipping()
        log.info(f"update {number} is skipped: {what}")
        if self.progress.skipped_in_a_row == MOST_SKIPPED:
            raise self._broken(
                f"{MOST_SKIPPED} updates in a row were skipped; in update {number}, {what}"
            )

    def _validate(
        self,
        validate: Callable[[], Measured],
        data: TrainingData,
        figures: TrainingLog,
        received: list[int],
    ) -> None:
        progress = self.progress
        with self._update.smoothed.swapped():
            scores, translations, notes = self._scores(validate, received)
        validation = Validation(
            update=progress.update,
            epoch=round(progress.update / data.batches_per_epoch, 3),
            train_loss=progress.loss / progress.tokens if progress.tokens else 0.0,
            seconds=self._seconds(),
            counts=progress.update % self._valid_freq == 0 or progress.update == progress.begin,
            **scores,
        )
        if not math.isfinite(validation.valid_loss):
            raise self._broken(
                f"the loss on the validation text is {validation.valid_loss} after update "
                f"{progress.update}"
            )
        for note in (*str(validation).splitlines(), *notes):
            log.info(note)
        # Before the checkpoint, because a resumed training does not validate again what that
        # counts.
        figures.validation(validation)
        self._directory.write_translations(progress.update, translations)
        self.progress = self._ranked().after_validation(validation)
        self._directory.keep(self.progress)
        self._reduce_learning_rate()

    def _scores(self, validate: Callable[[], Measured], received: list[int]) -> Measured:
        """Validates on the chief and broadcasts the scores. Translations and notes stay there."""
        is_chief = self._replicas.is_chief
        found = interruptible(validate, received) if is_chief else None
        # A signal to another process waits until the validation is recorded.
        self._stop_together(received if is_chief and found is None else [])
        scores, translations, notes = found or (dict.fromkeys(SCORES, 0.0), (), ())
        of_chief = self._replicas.from_chief(list(map(scores.get, SCORES)))
        return scores | dict(zip(SCORES, of_chief, strict=True)), translations, notes

    def _reduce_learning_rate(self) -> None:
        """Applies the plateaus of the validation loss so far to the learning rate."""
        factor = self._config.learning_rate_reduce_factor
        length = self._config.learning_rate_reduce_num_not_improved
        plateaus = self.progress.plateaus(length) if factor else 0
        if plateaus != self._plateaus:
            self._plateaus = plateaus
            self._update.reduce_learning_rate(factor**plateaus)
            log.info(
                f"the validation loss has not fallen for {length} validations: learning rate x "
                f"{factor**plateaus:g}"
            )

    def _broken(self, seen: str) -> UserError:
        saved = self._directory.saved
        kept = (
            f"{self._path} keeps the model of update {saved}" if saved else "nothing is saved yet"
        )
        return UserError(f"{seen}; train again with a lower --learning_rate or --clip_c; {kept}")

    def _seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)

    def _save_last(self) -> None:
        """Saves the last update, unless it was skipped: then resume from the checkpoint before the
        skipped updates.

        Before the first update there is nothing to save: the same command begins in the same way.
        """
        if self.progress.update > self.progress.begin and not self.progress.skipped_in_a_row:
            self._directory.save_last(replace(self.progress, seconds=self._seconds()))
