"""The training loop: updates, validation, early stopping, checkpoints.

All that the loop carries from one update to the next is saved in the last checkpoint, and batch n and its dropout are
functions of (seed, n), so a training that goes on equals one that was never interrupted.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import keras
import tensorflow as tf
from tqdm import tqdm

from .checkpoints import BEST, LAST, load_checkpoint, save_checkpoint
from .config import Config
from .data import TrainingData, ValidationData
from .errors import UserError
from .metrics import bleu
from .update import Update


@dataclass(frozen=True)
class Validation:
    """One validation, as it is logged."""

    update: int
    epoch: float
    train_loss: float  # per target token, its end counted, in nats; smoothed labels and dropout included
    valid_loss: float  # per target token, its end counted, in nats
    bleu: float
    seconds: float  # spent training so far, validations included

    def quality(self) -> tuple[float, float]:
        """Returns what is greater for a better model."""
        return self.bleu, -self.valid_loss


@dataclass(frozen=True)
class Progress:
    """Where a training stands."""

    update: int = 0
    seconds: float = 0.0
    bad_validations: int = 0  # in a row
    validations: tuple[Validation, ...] = field(default=())

    @property
    def best(self) -> Validation | None:
        """The first of the validations with the highest BLEU; of equal ones that with the lowest loss."""
        return max(self.validations, key=Validation.quality, default=None)

    def after(self, validation: Validation) -> "Progress":
        """Returns the progress with one more validation."""
        better = self.best is None or validation.quality() > self.best.quality()
        return replace(
            self,
            update=validation.update,
            seconds=validation.seconds,
            bad_validations=0 if better else self.bad_validations + 1,
            validations=(*self.validations, validation),
        )

    @classmethod
    def from_json(cls, state: dict) -> "Progress":
        """Reverses `dataclasses.asdict`."""
        return cls(**{**state, "validations": tuple(Validation(**each) for each in state["validations"])})


class Trainer:
    """Trains a model.

    Args:
        model: Offers `costs`, as `rnnsearch.RNNSearch` does.
        config: How to train.
        data: The training batches.
        valid: The validation corpus.
        translate: Maps lines to translations, in order.
        directory: Where checkpoints and logs go; a training found there goes on.
    """

    def __init__(
        self,
        model: keras.Model,
        config: Config,
        data: TrainingData,
        *,
        valid: ValidationData,
        translate: Callable[[Sequence[bytes]], list[str]],
        directory: Path,
    ):
        self._model, self._config, self._data = model, config, data
        self._valid, self._translate, self._directory = valid, translate, directory
        self._update = Update(model, config)
        self._costs = tf.function(model.costs, reduce_retracing=True)

    def train(self) -> Progress:
        """Trains until the configuration says stop, and returns where it stopped."""
        progress = self._resume()
        last = min(self._config.finish_after, self._config.max_epochs * self._data.batches_per_epoch)
        writer = tf.summary.create_file_writer(str(self._directory / "logs"))
        batches = iter(self._data.batches(progress.update))
        with writer.as_default(), tqdm(initial=progress.update, total=last, unit=" updates") as bar:
            while progress.update < last and progress.bad_validations < self._config.patience:
                until = min(last, progress.update - progress.update % self._config.valid_freq + self._config.valid_freq)
                progress = self._train_until(until, progress, batches, bar)
                self._save(progress)
        return progress

    def _resume(self) -> Progress:
        path = self._directory / LAST
        if not path.exists():
            return Progress()
        state = load_checkpoint(path, self._update.variables)
        return Progress.from_json(state)

    def _train_until(self, until: int, progress: Progress, batches, bar: tqdm) -> Progress:
        """Trains up to an update and validates."""
        start = time.monotonic() - progress.seconds
        begun = shown = time.monotonic()
        loss = tokens = 0.0
        for update in range(progress.update + 1, until + 1):
            batch_loss, batch_tokens = self._update(next(batches), update)
            loss, tokens = loss + batch_loss, tokens + batch_tokens
            if not math.isfinite(loss):
                raise UserError(
                    f"the loss is {loss} after update {update}: lower --learning_rate, or --clip_c; "
                    f"the model of update {progress.update} is kept in {self._directory}"
                )
            bar.update()
            if time.monotonic() - shown > 1:
                shown = time.monotonic()
                bar.set_postfix_str(f"loss {loss / tokens:.3f}, {tokens / (shown - begun):.0f} words/s", refresh=False)
        validation = Validation(
            update=until,
            epoch=round(until / self._data.batches_per_epoch, 3),
            train_loss=loss / tokens,
            valid_loss=self._valid_loss(),
            bleu=bleu(self._translate(self._valid.sources), self._valid.references).score,
            seconds=round(time.monotonic() - start, 3),
        )
        self._log(validation)
        return progress.after(validation)

    def _valid_loss(self) -> float:
        costs = sum(float(tf.reduce_sum(self._costs(*batch))) for batch in self._valid.batches)
        return costs / sum(float(tf.reduce_sum(batch.target_mask)) for batch in self._valid.batches)

    def _log(self, validation: Validation) -> None:
        for name in ("train_loss", "valid_loss", "bleu"):
            tf.summary.scalar(name, getattr(validation, name), step=validation.update)
        tqdm.write(
            f"update {validation.update}  train loss {validation.train_loss:.3f}  "
            f"valid loss {validation.valid_loss:.3f}  BLEU {validation.bleu:.2f}  {validation.seconds:.0f} s",
            file=sys.stderr,
        )

    def _save(self, progress: Progress) -> None:
        """Writes the checkpoints; the last one last, since it is what a training goes on from."""
        state = asdict(progress)
        if progress.bad_validations == 0:
            save_checkpoint(self._directory / BEST, self._model.variables, state)
        save_checkpoint(self._directory / LAST, self._update.variables, state)
        aside = self._directory / "progress.json.part"
        aside.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
        aside.replace(self._directory / "progress.json")
