"""The training loop: updates, validation, early stopping, checkpoints.

The last checkpoint holds everything that the next update depends on. Batch n and its dropout depend
only on the seed and n. So a resumed training equals one that was never interrupted, if it has the
same number of processes.
"""

import contextlib
import functools
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..messages import log
from ..storage.checkpoints import LAST, load_checkpoint
from ..text.batches import Batch
from ..text.datasets import TrainingData
from .interruption import Interrupted, deferred_signals, interruptible
from .log import Bar, TrainingLog
from .model_directory import ModelDirectory
from .progress import Progress, Validation
from .update import Update
from .validation import SCORES, Validator

MOST_SKIPPED = 10  # skipped updates in a row that stop the training


class Trainer:
    """Trains a model as the configuration of `update` says.

    Only the chief of its processes validates and writes.
    """

    def __init__(self, update: Update, directory: Path, made_with: Mapping[str, Any]):
        self._update = update
        self._config = update.config
        self._replicas = update.replicas
        self._path = directory
        self._directory = ModelDirectory(directory, update, made_with)
        self.progress = self._directory.resume()
        self._plateaus = 0  # of the validation loss so far; each has reduced the learning rate
        self._start = time.monotonic()
        self._words = self._seconds_of_updates = (
            0.0  # target tokens of this run, and the time of their updates
        )

    def continue_from(self, directory: Path, made_with: Mapping[str, Any]) -> None:
        """Takes over the last state of another training of these values, not its validations: texts may differ."""
        found = Progress.from_json(
            load_checkpoint(directory / LAST, self._update.variables, made_with)
        )
        self.progress = Progress(update=found.update, batch=found.batch, begin=found.update)

    def limit(self, data: TrainingData) -> tuple[int, str]:
        """Returns the number of the last update, and the option that sets it."""
        config = self._config
        update = self.progress.update
        begin = self.progress.begin
        last = update + config.max_epochs * data.batches_per_epoch - self._next_batch(data)
        limit = f"--max_epochs {config.max_epochs}"
        if last >= config.finish_after:
            last = config.finish_after
            limit = f"--finish_after {config.finish_after}"
        if update > last or 0 < begin == update == last:
            raise UserError(
                f"this training has made {update} updates, and {limit} ends it at {last}; give a larger one"
            )
        return last, limit

    def train(self, data: TrainingData, validate: Validator) -> str:
        """Trains until a limit of the configuration is reached, and returns which.

        Raises:
            Interrupted: SIGTERM or Ctrl-C came; the last update is saved, unless it was skipped.
        """
        self._start = time.monotonic() - self.progress.seconds
        self._reduce_learning_rate()
        self._valid_freq = self._config.valid_freq or min(max(data.batches_per_epoch, 500), 10_000)
        self._last, limit = self.limit(data)
        self._take_place(data)
        batches = data.batches(self.progress.batch, (self._replicas.rank, self._replicas.count))
        if self.progress.validated:
            self._directory.keep(self.progress)  # a killed process may have saved only `LAST`
        figures = TrainingLog(self._path / "logs" if self._replicas.is_chief else None)
        log.info(
            f"{data.batches_per_epoch} updates are an epoch; validates every {self._valid_freq} updates; stops after "
            f"{self._config.patience} validations in a row without a better one, or at {limit}"
        )
        with contextlib.closing(figures.writer), deferred_signals() as poll, Bar(data) as bar:
            try:
                while self._ranked().bad_validations < self._config.patience:
                    self._stop_together(_attempted(poll)[1])
                    if self._validation_is_due():
                        self._validate(validate, data, figures, poll)
                    elif self.progress.update < self._last:
                        following = (
                            self.progress.update // self._valid_freq + 1
                        ) * self._valid_freq
                        bar.aim(self.progress, min(self._last, following))
                        self._train_on(next(batches), bar, figures, poll)
                        if self._directory.save_is_due(self.progress.update):
                            figures.writer.flush()
                            self._save_last()
                    else:
                        self._replicas.leave()
                        return limit
            except Interrupted:
                figures.writer.flush()
                self._save_last()
                self._replicas.leave()
                raise
            finally:
                del (
                    batches
                )  # stops the threads that read text, which must not outlive the interpreter
        self._replicas.leave()
        return f"{self.progress.bad_validations} validations in a row without a better one (--patience)"

    def _next_batch(self, data: TrainingData) -> int:
        """Returns the number of the next batch.

        A training of an earlier version stays at its share of an epoch.
        """
        progress = self.progress
        if progress.batch or not progress.update:
            return progress.batch
        return round(progress.update * data.batches_per_epoch / data.earlier_batches_per_epoch)

    def _take_place(self, data: TrainingData) -> None:
        """Sets the number of the next batch of a training of an earlier version."""
        batch = self._next_batch(data)
        of_epoch = data.batches_per_epoch
        earlier = data.earlier_batches_per_epoch
        if batch != self.progress.batch and of_epoch != earlier:
            epoch, done = divmod(batch, of_epoch)
            log.info(
                f"an earlier version, with {earlier} batches in an epoch, made the first {self.progress.update} "
                f"updates; now there are {of_epoch}, and the training goes on at the same share of its epoch: {done} "
                f"of {of_epoch} batches of epoch {epoch + 1} are done"
            )
        self.progress = replace(self.progress, batch=batch)

    def _ranked(self) -> Progress:
        """Returns the progress with the ranking of the configuration, which the next validation follows."""
        return self.progress.ranked_by(
            self._config.valid_metric, self._config.valid_tokenizer, self._config.decoding.search
        )

    def _stop_together(self, stop: Interrupted | None) -> None:
        """Raises `Interrupted` in all processes if one of them was asked to end."""
        if self._replicas.any(stop is not None):
            raise stop or Interrupted(signal.SIGTERM)

    def _validation_is_due(self) -> bool:
        """Whether to validate now.

        A model of another training is validated before its first update.
        """
        progress = self.progress
        if progress.update == progress.begin:
            return bool(self._config.reload) and not progress.validations
        return not progress.validated and (
            progress.update % self._valid_freq == 0 or progress.update >= self._last
        )

    def _train_on(
        self, batch: Batch, bar: Bar, figures: TrainingLog, poll: Callable[[], None]
    ) -> None:
        number = self.progress.update + 1
        begun = time.monotonic()
        if seen := self._update.has_seen(batch):
            gradients = self._update.gradients(batch, number)
        else:
            with bar.compiling(batch.source.shape[1]):
                compute = functools.partial(self._update.gradients, batch, number)
                gradients, stop = _attempted(interruptible, compute, poll)
                self._stop_together(stop)
        cost, words, norm = self._update.apply(gradients)
        if seen:
            self._words += words
            self._seconds_of_updates += time.monotonic() - begun
        finite = math.isfinite(cost) and math.isfinite(norm)
        self.progress = (
            self.progress.after_update(cost, words) if finite else self.progress.after_skipping()
        )
        speed = self._words / self._seconds_of_updates if self._words else 0.0
        if number % self._config.summary_freq == 0:
            rate = self._update.learning_rate
            figures.update(
                number,
                loss=cost / words,
                gradient_norm=norm,
                learning_rate=rate,
                tokens_per_second=speed,
            )
        bar.advance(self.progress, speed)
        if finite:
            return
        what = f"the loss is {cost}, the norm of its gradient {norm}"
        log.info(f"update {number} is skipped: {what}")
        if self.progress.skipped_in_a_row == MOST_SKIPPED:
            raise self._broken(
                f"{MOST_SKIPPED} updates in a row were skipped; in update {number}, {what}"
            )

    def _validate(
        self,
        validate: Validator,
        data: TrainingData,
        figures: TrainingLog,
        poll: Callable[[], None],
    ) -> None:
        progress = self.progress
        with self._update.evaluated_weights():
            scores, translations, notes = self._scores(validate, poll)
        validation = Validation(
            update=progress.update,
            epoch=round(progress.batch / data.batches_per_epoch, 3),
            train_loss=progress.loss / progress.tokens if progress.tokens else 0.0,
            seconds=self._seconds(),
            counts=progress.update % self._valid_freq == 0 or progress.update == progress.begin,
            **scores,
        )
        if not math.isfinite(validation.valid_loss):
            seen = f"the loss on the validation text is {validation.valid_loss} after update {progress.update}"
            raise self._broken(seen)
        for note in (*str(validation).splitlines(), *notes):
            log.info(note)
        # Before the checkpoint, because a resumed training does not validate again what that
        # counts.
        figures.validation(validation)
        self._directory.write_translations(progress.update, translations)
        self.progress = self._ranked().after_validation(validation)
        self._directory.keep(self.progress)
        self._reduce_learning_rate()

    def _scores(
        self, validate: Validator, poll: Callable[[], None]
    ) -> tuple[dict[str, Any], Sequence[str], Sequence[str]]:
        """Returns what the chief measures, in all processes, and in the chief the translations and what is to say."""
        found, stop = (
            _attempted(interruptible, validate, poll) if self._replicas.is_chief else (None, None)
        )
        scores, translations, notes = found or (dict.fromkeys(SCORES, 0.0), (), ())
        stopped, *found_by_chief = self._replicas.from_chief(
            [float(stop is not None), *map(scores.get, SCORES)]
        )
        if stopped:
            raise stop or Interrupted(signal.SIGTERM)
        return scores | dict(zip(SCORES, found_by_chief, strict=True)), translations, notes

    def _reduce_learning_rate(self) -> None:
        """Sets the factor of the learning rate, which follows from the validations so far, and prints a new one."""
        factor = self._config.learning_rate_reduce_factor
        length = self._config.learning_rate_reduce_num_not_improved
        if factor and (plateaus := self.progress.plateaus(length)) != self._plateaus:
            self._plateaus = plateaus
            product = factor**plateaus
            self._update.reduce_learning_rate(product)
            log.info(
                f"the validation loss has not fallen for {length} validations: learning rate x {product:g}"
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


def _attempted(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Interrupted | None]:
    """Returns the result of a function and `None`, or `None` and the interruption that it raises."""
    try:
        return function(*arguments), None
    except Interrupted as interruption:
        return None, interruption
