"""Shows the figures of a training: in TensorBoard, in messages and in a progress bar."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tqdm import tqdm

from ..messages import log
from ..text.datasets import TrainingData
from .progress import Progress, Validation


class TrainingLog:
    """Writes figures to a directory; without one, nothing.

    Its owner flushes `writer`, and closes it.
    """

    def __init__(self, directory: Path | None):
        self.writer = (
            tf.summary.create_file_writer(str(directory))
            if directory
            else tf.summary.create_noop_writer()
        )

    def update(self, number: int, **figures: float) -> None:
        words = [f"update {number}"]
        for name, value in figures.items():
            digits = ".0f" if value >= 1000 else ".4g"
            words.append(f"{name.replace('_', ' ')} {value:{digits}}")
            self._write(number, f"update/{name}", value)
        log.debug("  ".join(words))

    def validation(self, validation: Validation) -> None:
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


class Bar(contextlib.AbstractContextManager):
    """Shows updates, epochs, loss and speed, and how long it takes until the next validation."""

    def __init__(self, data: TrainingData):
        self._epoch = data.batches_per_epoch
        self._widths = sum(batches > 0 for *_, batches in data.sizes)
        self._seen = 0  # widths that this run has seen
        self._compiled = 0.0  # seconds of compilation, which the bar's own times leave out
        self._end = 0  # the update that the bar ends with
        # With smoothing, the estimate would follow the widths of the last batches.
        self._bar = tqdm(unit=" updates", smoothing=0, miniters=1, delay=1e-3)
        self._bar.delay = 0  # it was only for the first line, which would say nothing

    def __exit__(self, *error) -> None:
        self._bar.close()

    def reset_total(self, progress: Progress, valid_freq: int, last: int) -> None:
        """Begins anew if the next validation is another one than before."""
        validation = min(last, (progress.update // valid_freq + 1) * valid_freq)
        if validation != self._end:
            self._end = validation
            self._bar.initial = 0
            self._describe(progress)
            self._bar.reset(total=validation - progress.update)

    def advance(self, progress: Progress, speed: float) -> None:
        """Shows one more update, and the speed in target tokens a second."""
        self._describe(progress)
        loss = f"loss {progress.loss / progress.tokens:.3f}, " if progress.tokens else ""
        seconds = self._bar.format_interval(self._compiled)
        compiled = f"{self._seen} of {self._widths} widths compiled in {seconds}"
        self._bar.set_postfix_str(f"{loss}{speed:.0f} tokens/s; {compiled}", refresh=False)
        self._bar.update()

    @contextlib.contextmanager
    def compiling(self, width: int) -> Iterator[None]:
        """Says that the update for this width of a batch is compiled meanwhile.

        That is left out of the estimate.
        """
        self._seen += 1
        begun = time.monotonic()
        self._bar.set_postfix_str(
            "compiling, once for each width of a batch "
            f"({self._seen} of {self._widths}, {width} tokens)"
        )
        yield
        if not self._bar.disable:
            seconds = time.monotonic() - begun
            self._compiled += seconds
            self._bar.start_t += seconds
            # A bar that was printed before it started has no new line at its end.
            self._bar.last_print_t += seconds

    def _describe(self, progress: Progress) -> None:
        at = f"update {progress.update}, epoch {progress.update / self._epoch:.2f}"
        self._bar.set_description_str(f"{at}; to the next validation", refresh=False)
