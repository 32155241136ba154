"""The training loop: updates, validation, early stopping, checkpoints.

The last checkpoint holds everything that the next update depends on. Batch n and its dropout depend only on the seed
and n. So a resumed training equals one that was never interrupted, if it has the same number of processes.
"""

import contextlib
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..errors import UserError
from ..storage.checkpoints import load_checkpoint
from ..text.batches import Batch
from ..text.datasets import TrainingData
from .interruption import Interrupted, deferred_signals
from .log import TrainingLog, say
from .model_directory import ModelDirectory
from .progress import Progress, Validation
from .update import Update
from .validation import Scores

MOST_SKIPPED = 10  # skipped updates in a row that stop the training
Validate = Callable[[Callable[[], None]], Scores]  # measures the model; calls its argument between batches


class Trainer:
    """Trains a model.

    Args:
        update: Its configuration says how long to train, and when to validate, save and log. Only the chief of its
            processes validates and writes.
        directory: A training found there is resumed.
        made_with: Values that a training found there must share, by name.

    Raises:
        UserError: The training found there cannot be resumed.
    """

    def __init__(self, update: Update, directory: Path, made_with: Mapping[str, Any]):
        self._update, self._config, self._replicas = update, update.config, update.replicas
        self._path, self._directory = directory, ModelDirectory(directory, update, made_with)
        self.progress, self._begin = self._directory.resume(), 0  # updates that another training made
        self._plateaus = 0  # of the validation loss so far; each has reduced the learning rate
        self._start = time.monotonic()
        self._words = self._seconds_of_updates = 0.0  # target tokens of this run, and the time of their updates
        self._widths = self._widths_seen = 0  # widths of batches, and those that this run has seen

    def continue_from(self, checkpoint: Path, made_with: Mapping[str, Any]) -> None:
        """Begins with the weights, the optimizer and the number of updates of another training.

        Its validations are left out, because they may be of another text.

        Raises:
            UserError: The checkpoint cannot be loaded, or does not share the values of `made_with`.
        """
        found = Progress.from_json(load_checkpoint(checkpoint, self._update.variables, made_with))
        self.progress, self._begin = Progress(update=found.update, batch=found.batch), found.update

    def last_update(self, data: TrainingData) -> int:
        """Returns the number of the last update.

        Raises:
            UserError: This training, or the one that it continues, has made more updates already.
        """
        update = self.progress.update
        of_epochs = update + self._config.max_epochs * data.batches_per_epoch - self._next_batch(data)
        last = min(self._config.finish_after, of_epochs)
        if self._begin >= last:
            raise UserError(
                f"this training begins after update {self._begin} and would end at {last}; give a larger "
                "--finish_after or --max_epochs"
            )
        if update > last:
            option = "finish_after" if last == self._config.finish_after else "max_epochs"
            raise UserError(
                f"{self._path} holds a training of {update} updates, but --{option} {getattr(self._config, option)} "
                f"ends it after {last}; give a larger one"
            )
        return last

    def _next_batch(self, data: TrainingData) -> int:
        """Returns the number of the next batch. A training of an earlier version stays at its share of an epoch."""
        progress, of_epoch = self.progress, data.batches_per_epoch
        if progress.batch or not progress.update:
            return progress.batch
        return round(progress.update * of_epoch / data.earlier_batches_per_epoch)

    def _take_place(self, data: TrainingData) -> None:
        batch, of_epoch = self._next_batch(data), data.batches_per_epoch
        if batch != self.progress.batch:
            epoch, done = divmod(batch, of_epoch)
            say(
                f"an earlier version, with {data.earlier_batches_per_epoch} batches in an epoch, made the first "
                f"{self.progress.update} updates; now there are {of_epoch}, and the training goes on at the same share "
                f"of its epoch: {done} of {of_epoch} batches of epoch {epoch + 1} are done"
            )
            self.progress = replace(self.progress, batch=batch)

    def train(self, data: TrainingData, validate: Validate) -> Progress:
        """Trains until a limit of the configuration is reached, and returns the progress.

        Raises:
            UserError: The loss is not finite in `MOST_SKIPPED` updates in a row or on the validation text, a checkpoint
                cannot be written, or there is nothing to train (`last_update`).
            Interrupted: SIGTERM or Ctrl-C came; the last update is saved, unless it was skipped.
        """
        self._start = time.monotonic() - self.progress.seconds
        self._reduce_learning_rate()
        self._valid_freq = self._config.valid_freq or min(max(data.batches_per_epoch, 500), 10_000)
        last = self.last_update(data)
        self._take_place(data)
        self._widths = sum(batches > 0 for _, _, batches in data.sizes)
        batches = data.batches(self.progress.batch, (self._replicas.rank, self._replicas.count))
        if self.progress.validated:
            self._directory.keep(self.progress)  # a killed process may have saved only `LAST`
        log = TrainingLog(self._path / "logs" if self._replicas.is_chief else None, self.progress)
        # With smoothing, the time estimate would include compilations.
        about = {"initial": self.progress.update, "total": last, "unit": " updates", "smoothing": 0, "miniters": 1}
        with contextlib.closing(log.writer), deferred_signals() as poll, tqdm(**about) as bar:
            try:
                while self._ranked().bad_validations < self._config.patience:
                    self._poll(poll)
                    if self._validation_is_due(last):
                        epoch = self.progress.batch / data.batches_per_epoch
                        validation, translations = self._validate(validate, epoch, poll)
                        log.writer.flush()
                        # Before the checkpoint, because a resumed training does not validate again what that counts.
                        self._directory.write_translations(self.progress.update, translations)
                        self.progress = self._ranked().after_validation(validation)
                        self._directory.keep(self.progress)
                        self._reduce_learning_rate()
                        log.validation(validation)
                    elif self.progress.update < last:
                        self._train_on(next(batches), bar, log)
                        if self._directory.save_is_due(self.progress.update):
                            log.writer.flush()
                            self._save_last()
                    else:
                        break
            except Interrupted:
                log.writer.flush()
                self._save_last()
                self._replicas.leave()
                raise
            finally:
                del batches  # stops the threads that read text, which must not outlive the interpreter
        self._replicas.leave()
        return self.progress

    def _ranked(self) -> Progress:
        """Returns the progress with the ranking of the configuration, which the next validation follows."""
        return self.progress.ranked_by(
            self._config.valid_metric, self._config.valid_tokenizer, self._config.decoding.search
        )

    def _poll(self, poll: Callable[[], None]) -> None:
        """Raises `Interrupted` in all processes if one of them was asked to end."""
        _, stop = _attempted(poll)
        if self._replicas.any(stop is not None):
            raise stop or Interrupted(signal.SIGTERM)

    def _validation_is_due(self, last: int) -> bool:
        update = self.progress.update
        is_due = update % self._valid_freq == 0 or update >= last
        return is_due and update > self._begin and not self.progress.validated

    def _train_on(self, batch: Batch, bar: tqdm, log: TrainingLog) -> None:
        number = self.progress.update + 1
        cost, words, norm = self._timed_update(batch, number, bar)
        finite = math.isfinite(cost) and math.isfinite(norm)
        self.progress = self.progress.after_update(cost, words) if finite else self.progress.after_skipping()
        bar.update()
        speed = self._words / self._seconds_of_updates if self._seconds_of_updates else math.nan
        if number % self._config.summary_freq == 0:
            rate = self._update.learning_rate
            log.update(number, loss=cost / words, gradient_norm=norm, learning_rate=rate, tokens_per_second=speed)
        if finite:
            loss = self.progress.loss / self.progress.tokens
            measured = "" if math.isnan(speed) else f", {speed:.0f} tokens/s"
            bar.set_postfix_str(f"loss {loss:.3f}{measured}", refresh=False)
            return
        seen = f"the loss is {cost}, the norm of its gradient {norm}"
        say(f"update {number} is skipped: {seen}")
        if self.progress.skipped_in_a_row == MOST_SKIPPED:
            raise self._broken(f"{MOST_SKIPPED} updates in a row were skipped; in update {number}, {seen}")

    def _timed_update(self, batch: Batch, number: int, bar: tqdm) -> tuple[float, float, float]:
        """Makes an update. The first for each width of a batch may compile, and is left out of the measured speed."""
        width = batch.source.shape[1]
        first = not self._update.has_seen(batch)
        if first:
            self._widths_seen += 1
            which = f"width {self._widths_seen} of {self._widths}"
            bar.set_postfix_str(f"preparing for batches of {width} tokens, {which}", refresh=True)
        begun = time.monotonic()
        cost, words, norm = self._update(batch, number)
        seconds = time.monotonic() - begun
        if not first:
            self._words += words
            self._seconds_of_updates += seconds
        else:
            _leave_out(bar, seconds)
        return cost, words, norm

    def _validate(self, validate: Validate, epoch: float, poll: Callable[[], None]) -> tuple[Validation, Sequence[str]]:
        """Returns the result and, in the chief, the translations."""
        progress = self.progress
        with self._update.evaluated_weights():
            scores = self._scores(validate, poll)
        if not math.isfinite(scores.loss):
            raise self._broken(f"the loss on the validation text is {scores.loss} after update {progress.update}")
        validation = Validation(
            update=progress.update,
            epoch=round(epoch, 3),
            train_loss=progress.loss / progress.tokens if progress.tokens else math.nan,
            valid_loss=scores.loss,
            bleu=scores.bleu,
            chrf=scores.chrf,
            seconds=self._seconds(),
            counts=progress.update % self._valid_freq == 0,
            sets=dict(scores.sets),
        )
        say(
            f"update {validation.update}  train loss {validation.train_loss:.3f}  valid loss {scores.loss:.3f}  "
            f"BLEU {scores.bleu:.2f}  chrF {scores.chrf:.2f}  {validation.seconds:.0f} s"
        )
        for name, figures in scores.sets.items():
            say(f"  {name}  BLEU {figures['bleu']:.2f}  chrF {figures['chrf']:.2f}")
        if scores.cut:
            say(f"  {scores.cut} of {len(scores.translations)} translations reached the limit of length and were cut")
        if scores.warning:
            say(f"warning: {scores.warning}")
        return validation, scores.translations

    def _reduce_learning_rate(self) -> None:
        """Sets the factor of the learning rate, which follows from the validations so far, and prints a new one."""
        factor, length = self._config.learning_rate_reduce_factor, self._config.learning_rate_reduce_num_not_improved
        if factor and (plateaus := self.progress.plateaus(length)) != self._plateaus:
            self._plateaus = plateaus
            self._update.reduce_learning_rate(factor**plateaus)
            say(f"the validation loss has not fallen for {length} validations: learning rate x {factor**plateaus:g}")

    def _scores(self, validate: Validate, poll: Callable[[], None]) -> Scores:
        """Returns the scores that the chief measures, in all processes."""
        found, stop = _attempted(validate, poll) if self._replicas.is_chief else (None, None)
        scores = found or Scores(0.0, 0.0, 0.0)
        stopped, *figures = self._replicas.from_chief([float(stop is not None), *scores[:3]])
        if stopped:
            raise stop or Interrupted(signal.SIGTERM)
        return Scores(*figures, *scores[3:])

    def _broken(self, seen: str) -> UserError:
        saved = self._directory.saved
        kept = f"{self._path} keeps the model of update {saved}" if saved else "nothing is saved yet"
        return UserError(f"{seen}; train again with a lower --learning_rate or --clip_c; {kept}")

    def _seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)

    def _save_last(self) -> None:
        """Saves the last update, unless it was skipped: then resume from the checkpoint before the skipped updates."""
        if not self.progress.skipped_in_a_row:
            self._directory.save_last(replace(self.progress, seconds=self._seconds()))


def _attempted(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Interrupted | None]:
    """Returns the result of a function and `None`, or `None` and the interruption that it raises."""
    try:
        return function(*arguments), None
    except Interrupted as interruption:
        return None, interruption


def _leave_out(bar: tqdm, seconds: float) -> None:
    """Makes the estimate of the time left count neither an update nor its seconds."""
    if not bar.disable:
        bar.start_t += seconds
        bar.last_print_t += seconds  # a bar that was printed before it started is not closed with a new line
        bar.initial += 1
