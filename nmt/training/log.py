"""The figures of a training, for TensorBoard and in its messages."""

import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event

from ..messages import log
from .progress import Progress, Validation

OF_UPDATES = "update/"  # prefix of the names of figures of updates; the other figures are of validations


class TrainingLog:
    """Writes figures to a directory; without one, nothing. A resumed training drops those after its last checkpoint.

    Its owner flushes `writer` to pass all figures to the OS, and closes it.
    """

    def __init__(self, directory: Path | None, progress: Progress):
        if directory is None:
            self.writer = tf.summary.create_noop_writer()
            return
        old = sorted(directory.glob("events.out.tfevents.*"))
        # A process that was killed here has left figures in two files.
        figures = {figure[:2]: figure[2] for path in old for figure in _figures_of_updates(path)}
        self.writer = tf.summary.create_file_writer(str(directory))
        for (step, name), value in figures.items():
            if step <= progress.update:
                self._write(step, name, value)
        for validation in progress.validations:
            self.validation(validation)
        self.writer.flush()
        for path in old:
            path.unlink()

    def update(self, number: int, **figures: float) -> None:
        """Writes figures of an update."""
        formats = {name: ".0f" if value >= 1000 else ".4g" for name, value in figures.items()}
        told = "  ".join(f"{name.replace('_', ' ')} {value:{formats[name]}}" for name, value in figures.items())
        log.debug(f"update {number}  {told}")
        for name, value in figures.items():
            self._write(number, OF_UPDATES + name, value)

    def validation(self, validation: Validation) -> None:
        """Writes the figures of a validation."""
        for name in ("train_loss", "valid_loss", "bleu", "chrf"):
            value = getattr(validation, name)
            if value or name != "train_loss":  # there is none without an update
                self._write(validation.update, name, value)
        for name, figures in validation.sets.items():
            for metric, value in figures.items():
                self._write(validation.update, f"{metric}/{name}", value)
        self.writer.flush()

    def _write(self, step: int, name: str, value: float) -> None:
        with self.writer.as_default(step=step):
            tf.summary.scalar(name, value)


def _figures_of_updates(path: str | os.PathLike) -> Iterator[tuple[int, str, float]]:
    """Yields step, name and value of the figures of updates in an event file, up to the first damaged record."""
    try:
        for record in tf.data.TFRecordDataset(os.fspath(path)):
            event = Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.tag.startswith(OF_UPDATES):
                    yield event.step, value.tag, float(tf.make_ndarray(value.tensor))
    except tf.errors.DataLossError:  # the last record of a killed process may be incomplete
        return
