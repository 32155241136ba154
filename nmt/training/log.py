"""Logs of a training: its messages, in a text file, and its figures, for TensorBoard."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tqdm import tqdm

from ..errors import UserError
from .progress import Progress, Validation

OF_UPDATES = "update/"  # prefix of the names of figures of updates; the other figures are of validations

_files: list[TextIO] = []  # of messages


def say(text: str) -> None:
    """Prints a message on standard error, above a progress bar, and adds it to the file of `message_file`."""
    tqdm.write(text, file=sys.stderr)
    _log(text)


def _log(text: str) -> None:
    for file in _files:
        with contextlib.suppress(OSError):  # a full disk must not end a training here, where nothing is lost
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
            file.flush()


@contextlib.contextmanager
def message_file(path: Path) -> Iterator[None]:
    """Within this context, `say` adds its messages to a file, with the time. A `UserError` is added too.

    A training that ends before it has written its configuration leaves no new file.
    """
    is_new = not path.exists()
    file = path.open("a", encoding="utf-8", errors="backslashreplace")
    _files.append(file)
    try:
        yield
    except BaseException as error:
        if isinstance(error, UserError):
            _log(str(error))
        if is_new and not path.with_name("config.json").exists():
            path.unlink()
        raise
    finally:
        _files.remove(file)
        with contextlib.suppress(OSError):
            file.close()


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
        for name, value in figures.items():
            self._write(number, OF_UPDATES + name, value)

    def validation(self, validation: Validation) -> None:
        """Writes the figures of a validation."""
        for name in ("train_loss", "valid_loss", "bleu", "chrf"):
            self._write(validation.update, name, getattr(validation, name))
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
