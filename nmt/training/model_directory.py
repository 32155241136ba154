"""Writes checkpoints, progress and translations of a training to its model directory."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras

from ..storage.checkpoints import (
    BEST,
    KEPT,
    LAST,
    kept_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from ..storage.files import atomic_write, write_json
from .progress import Progress
from .update import Update

_SAVE_SECONDS = 600  # between checkpoints, unless the configuration has a save_freq


class ModelDirectory:
    """The directory of a training. Only the chief of the processes of `update` writes; the others
    keep account.

    Attributes:
        saved: Update of the newest checkpoint, or 0.
    """

    def __init__(self, path: Path, update: Update, fingerprint: Mapping[str, Any]):
        self._path = path
        self._update = update
        self._fingerprint = fingerprint
        self._config = update.config
        self.saved = 0
        self._saved_at = time.monotonic()

    def resume(self) -> Progress:
        """Loads the last checkpoint, if there is one, and returns the progress of the training."""
        if not (self._path / LAST).exists():
            return Progress()
        progress = Progress.from_json(
            load_checkpoint(self._path / LAST, self._update.variables, self._fingerprint)
        )
        self.saved = progress.update
        return progress

    def save_is_due(self, update: int) -> bool:
        if self._config.save_freq:
            return update % self._config.save_freq == 0
        return time.monotonic() - self._saved_at > _SAVE_SECONDS

    def save_last(self, progress: Progress) -> None:
        """Saves what the next update depends on."""
        if self._update.replicas.is_chief:
            self._save(self._path / LAST, self._update.variables, progress)
        self.saved = progress.update
        self._saved_at = time.monotonic()

    def keep(self, progress: Progress) -> None:
        """Saves after a validation: `LAST` first, because `BEST` can be restored from it."""
        self.save_last(progress)
        if not self._update.replicas.is_chief:
            return
        with self._update.smoothed.swapped():
            if progress.best is progress.validations[-1]:
                self._save(self._path / BEST, self._update.model.variables, progress)
            if self._config.keep or self._config.keep_best:
                self._keep_several(progress)
        write_json(self._path / "progress.json", asdict(progress))

    def write_translations(self, update: int, translations: Sequence[str]) -> None:
        if self._update.replicas.is_chief:
            (self._path / "valid").mkdir(exist_ok=True)
            with atomic_write(self._path / "valid" / f"{update}.txt") as file:
                file.writelines(f"{line}\n" for line in translations)

    def _keep_several(self, progress: Progress) -> None:
        """Keeps the model if it is among the latest or best, and removes those that are not."""
        latest = progress.validations[max(0, len(progress.validations) - self._config.keep) :]
        kept = {str(each.update) for each in (*latest, *progress.ranking[: self._config.keep_best])}
        name = str(progress.update)
        if name in kept:
            (self._path / KEPT).mkdir(exist_ok=True)
            self._save(self._path / KEPT / f"{name}.npz", self._update.model.variables, progress)
        for path in kept_checkpoints(self._path):
            if path.stem not in kept:
                path.unlink()

    def _save(self, path: Path, variables: Sequence[keras.Variable], progress: Progress) -> None:
        save_checkpoint(path, variables, asdict(progress), self._fingerprint)
