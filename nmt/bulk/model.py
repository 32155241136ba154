"""Translates with an export in a process of its own, which a line may kill."""

import contextlib
import functools
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..concurrency import Killed, Process
from ..errors import UserError, sentence_of
from ..load_tensorflow import load_tensorflow
from ..text.long_lines import halve, join_pieces

_LONGEST = 200  # characters of a reason


@dataclass(frozen=True)
class Failure:
    """Stands for a line or translation that is missing or not whole, and says why."""

    reason: str
    text: bytes = b""  # what there is of the translation


Translate = Callable[[Sequence[bytes]], list[bytes | Failure]]


class ModelError(Exception):
    """Says that the model fails, cannot be loaded, or its process ended, and why."""


class Model:
    """Calls an export in a process of its own. If a line kills it, the next call starts another.

    Args:
        seconds: Longest time for a call, which loads the export if need be.
        local: Makes a context manager that returns a local folder with the files of `path`.
    """

    def __init__(
        self, path: str, seconds: float, local: Callable[[str], Any] = contextlib.nullcontext
    ):
        # One call at a time, so that it is known which one kills the process.
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        try:
            self._process = Process(_load, self._stack.enter_context(local(path)), seconds=seconds)
            self._stack.callback(self._process.end)
            self([b""])
        except Exception as error:
            self.close()
            raise UserError(f"{path} cannot be used: {error}") from None

    def __call__(self, lines: Sequence[bytes]) -> list[bytes | Failure]:
        """Returns the translation of each line, or a `Failure` if the model cut it.

        Raises:
            ModelError: The model fails; if there is only one line, twice: something else may be the
                reason.
            TimeoutError: The model does not answer in time. Its process is killed.
        """
        try:
            if len(lines) == 1:
                with contextlib.suppress(Killed, ModelError), self._lock:
                    return self._process(lines)
            with self._lock:
                return self._process(lines)
        except TimeoutError as error:
            raise TimeoutError(
                f"the model {error}; give a larger --model_timeout, or fewer --chunk_lines"
            ) from None
        except Killed as error:
            raise ModelError(f"its process {error}") from None

    def close(self) -> None:
        """Ends the process and removes the local copy of the export."""
        self._stack.close()


def _load(folder: str) -> Translate:
    """Returns the function of a process, which loads the export at its first call."""
    with contextlib.suppress(OSError):  # only Linux has it
        # If memory runs out, the worker is not the one to end.
        Path("/proc/self/oom_score_adj").write_text("1000")
    worker = multiprocessing.parent_process()
    threading.Thread(
        target=lambda: (worker.join(), os._exit(0)), daemon=True
    ).start()  # also in a call

    def translate(lines: Sequence[bytes]) -> list[bytes | Failure]:
        try:
            return _translated(*_loaded(folder), lines)
        except Exception as error:  # whatever a damaged export or line makes TensorFlow raise
            raise ModelError(reason_of(error)) from None

    return translate


@functools.cache
def _loaded(folder: str) -> tuple[Any, Any]:
    tf = load_tensorflow([Path(folder)])
    import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

    for gpu in tf.config.list_physical_devices("GPU"):
        # Several processes load the export.
        tf.config.experimental.set_memory_growth(gpu, enable=True)
    return tf, tf.saved_model.load(folder)


def _translated(tf: Any, export: Any, lines: Sequence[bytes]) -> list[bytes | Failure]:
    found = export.signatures["serving_default"](sources=tf.constant(lines, tf.string))
    no = np.zeros(len(lines), bool)
    texts = found["translations"].numpy().tolist()
    source_cut, cut = (
        found[name].numpy() if name in found else no for name in ("source_cut", "translation_cut")
    )
    if len(texts) != len(lines):
        raise ValueError(f"the model returns {len(texts)} translations of {len(lines)} lines")
    for i in np.flatnonzero(cut):
        texts[i] = Failure("its translation was cut at the limit of its length", texts[i])
    for i in np.flatnonzero(source_cut):  # the model has read only the beginning
        if len(lines[i]) > 1:
            halves = halve(lines[i])
            found = _translated(tf, export, halves)
            read = [text_of(each).decode(errors="surrogateescape") for each in found]
            text = join_pieces(read, halves).encode(errors="surrogateescape")
            failed = (Failure(each.reason, text) for each in found if isinstance(each, Failure))
            texts[i] = next(failed, text)
    return texts


def text_of(result: bytes | Failure) -> bytes:
    """Returns the translation, or what there is of it."""
    return result.text if isinstance(result, Failure) else result


def translate_lines(model: Translate, lines: Sequence[bytes | Failure]) -> list[bytes | Failure]:
    """Returns the translation of each line, or a `Failure`.

    If the model fails, the lines are split in halves until each line that it fails on is alone.

    Raises:
        ModelError: The model fails on an empty line too, so the lines are not the cause.
        TimeoutError: The model does not answer in time. No line is blamed: a slow machine may be
            the reason.
    """
    found = iter(_isolate(model, [line for line in lines if isinstance(line, bytes)]))
    return [line if isinstance(line, Failure) else next(found) for line in lines]


def _isolate(model: Translate, lines: Sequence[bytes]) -> list[bytes | Failure]:
    if not lines:
        return []
    try:
        failure = Failure("its translation has a line feed")
        return [failure if b"\n" in text_of(each) else each for each in model(lines)]
    except ModelError as error:
        if len(lines) == 1:
            model([b""])
            return [Failure(f"the model fails: {error}")]
    half = len(lines) // 2
    return _isolate(model, lines[:half]) + _isolate(model, lines[half:])


def reason_of(error: Exception) -> str:
    """Returns type and message of an error, in one line."""
    return f"{type(error).__name__}: {sentence_of(str(error))}"[:_LONGEST]
