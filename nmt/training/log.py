"""Logs of a training: its messages, in a text file, and its figures, for TensorBoard."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tqdm import tqdm

from ..errors import UserError
from .progress import Progress, Validation

OF_UPDATES = "update/"  # prefix of the names of figures of updates; the other figures are of validations

_messages = logging.getLogger("nmt.training")
_messages.propagate = False
_messages.setLevel(logging.INFO)
_messages.addHandler(logging.NullHandler())


def say(text: str) -> None:
    """Prints a message on standard error, above a progress bar, and adds it to the file of `message_file`."""
    tqdm.write(text, file=sys.stderr)
    _messages.info(text)


class _File(logging.StreamHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Does nothing: a full disk must not end a training here, where nothing is lost."""


@contextlib.contextmanager
def message_file(path: Path) -> Iterator[None]:
    """Within this context, `say` adds its messages to a file, with the time. A `UserError` is added too.

    A training that ends before it has written its configuration leaves no new file.
    """
    is_new = not path.exists()
    handler = _File(path.open("a", encoding="utf-8"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    _messages.addHandler(handler)
    try:
        yield
    except BaseException as error:
        if isinstance(error, UserError):
            _messages.info(error)
        if is_new and not path.with_name("config.json").exists():
            path.unlink()
        raise
    finally:
        _messages.removeHandler(handler)
        with contextlib.suppress(OSError):
            handler.stream.close()


class TrainingLog:
    """Writes figures to a directory. When a training resumes, figures after its last checkpoint are dropped.

    Args:
        directory: The directory of the event files; `None` writes nothing.
        progress: The progress that is saved.
    """

    def __init__(self, directory: Path | None, progress: Progress):
        if directory is None:
            self._writer = tf.summary.create_noop_writer()
            return
        old = sorted(directory.glob("events.out.tfevents.*"))
        # A process that was killed here has left figures in two files.
        figures = {figure[:2]: figure[2] for path in old for figure in _figures_of_updates(path)}
        self._writer = tf.summary.create_file_writer(str(directory))
        for (step, name), value in figures.items():
            if step <= progress.update:
                self._write(step, name, value)
        for validation in progress.validations:
            self.validation(validation)
        self.flush()
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
        self.flush()

    def flush(self) -> None:
        """Passes all figures to the OS."""
        self._writer.flush()

    def close(self) -> None:
        """Closes the log."""
        self._writer.close()

    def _write(self, step: int, name: str, value: float) -> None:
        with self._writer.as_default(step=step):
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
